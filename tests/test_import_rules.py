"""Who may import whom, and what no module may do, read from the source of every module."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
BASE = ("types", "errors", "seeds", "events")
PACKAGE = "unpoison"
"""``unpoison`` itself, for its version; no module below it comes with that."""

EVERYTHING = (
    *BASE, "core", "learners", "data", "attacks", "defenses", "runners", "report", "outputs", "estimator",
    "cleaning", "measuring", "reviewing", "evaluation", PACKAGE,
)  # fmt: skip

MAY_IMPORT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(BASE, BASE),
    PACKAGE: ("core.result", "estimator", "measuring"),
    "core": ("core", *BASE),
    "learners": ("learners", "core", *BASE),
    "data": ("data", *BASE),
    "attacks": ("attacks", "learners", "data", *BASE),
    "defenses": ("defenses", "core", "learners", "runners", *BASE),
    "runners": ("runners", *BASE),
    "report": ("report", "core.result", "data", *BASE),
    "outputs": ("outputs", "report", "core.result", "data", PACKAGE, *BASE),
    "estimator": ("core", "learners", "runners", "data", "outputs", *BASE),
    "adapters": ("adapters", "estimator", "core", "learners", "data", *BASE),
    "cleaning": ("core", "learners", "runners", "data", "outputs", PACKAGE, *BASE),
    "measuring": ("core", "learners", "runners", "data", "cleaning", PACKAGE, *BASE),
    "reviewing": ("data", "outputs", "report", *BASE),
    "evaluation": EVERYTHING,
    "cli": ("cli", *(part for part in EVERYTHING if part != "attacks")),
    "__main__": ("cli",),
}
"""What each part may import of unpoison; ``core.result`` means that module only, ``core`` all of core."""

ONLY_NUMPY = ("core", *BASE)
TORCH_ALLOWED = ("learners", "attacks", "adapters")
PICKLES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal", "jsonpickle"}
PICKLE_LOADERS = {"numpy.load", "numpy.lib.format.read_array", "numpy.lib.npyio.load"}


@dataclass(frozen=True)
class Module:
    """A module by its dotted name and its source."""

    name: str
    source: str
    is_package: bool = False

    @property
    def part(self) -> str:
        """The part of unpoison that it belongs to."""
        names = self.name.split(".")
        return names[1] if len(names) > 1 else PACKAGE

    @property
    def package(self) -> str:
        return self.name if self.is_package else self.name.rpartition(".")[0]


def modules() -> Iterator[Module]:
    for path in sorted((SOURCE / PACKAGE).rglob("*.py")):
        names = list(path.relative_to(SOURCE).with_suffix("").parts)
        is_package = names[-1] == "__init__"
        name = ".".join(names[:-1] if is_package else names)
        yield Module(name, path.read_text(encoding="utf-8"), is_package)


KNOWN = {module.name for module in modules()}


def violations(module: Module) -> list[str]:
    """Everything in a module that is against the rules, with the line."""
    tree = ast.parse(module.source)
    found = [*_wrong_imports(module, tree), *_wrong_statements(module, tree)]
    return [f"{module.name}:{line}: {what}" for line, what in sorted(found)]


def _wrong_imports(module: Module, tree: ast.AST) -> Iterator[tuple[int, str]]:
    for line, imported in _imports(module, tree):
        top = imported.partition(".")[0]
        if top == PACKAGE:
            if not _allowed(module, imported):
                yield line, f"{module.part} may not import {imported}"
        elif top in PICKLES:
            yield line, f"imports {imported}: no pickle anywhere"
        elif top == "torch" and module.part not in TORCH_ALLOWED:
            yield line, "imports torch outside learners, attacks and adapters"
        elif module.part in ONLY_NUMPY and top != "numpy" and top not in sys.stdlib_module_names:
            yield line, f"{module.part} may import numpy only, not {imported}"


def _imports(module: Module, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of everything imported, also inside functions and for type checking."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = _absolute(module, node)
            for alias in node.names:
                full = f"{origin}.{alias.name}"
                # "from unpoison.core import result" imports a module, "... import Group" a name in one
                yield node.lineno, full if full in KNOWN or alias.name == "*" else origin
        elif isinstance(node, ast.Call) and _called(node).endswith(("import_module", "__import__")):
            argument = node.args[0] if node.args else None
            name = argument.value if isinstance(argument, ast.Constant) else None
            yield node.lineno, name if isinstance(name, str) else f"{PACKAGE}.(whatever)"


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.package.split(".")
    above = package[: len(package) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _allowed(module: Module, imported: str) -> bool:
    for part in MAY_IMPORT[module.part]:
        name = PACKAGE if part == PACKAGE else f"{PACKAGE}.{part}"
        if imported == name or (part != PACKAGE and imported.startswith(f"{name}.")):
            return True
    return False


def _wrong_statements(module: Module, tree: ast.AST) -> Iterator[tuple[int, str]]:
    aliases = _aliases(module, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield node.lineno, "assert: raise an error that names the input"
        if not isinstance(node, ast.Call):
            continue
        called = _called(node)
        first, _, rest = called.partition(".")
        full = ".".join(filter(None, [aliases.get(first, first), rest]))
        if full in ("print", "builtins.print"):
            yield node.lineno, "print: only the command line speaks, through click"
        if full in PICKLE_LOADERS and not _refuses_pickle(node):
            yield node.lineno, f"{called} without allow_pickle=False"
        if full == "joblib.load":
            yield node.lineno, "joblib.load reads pickles"


def _aliases(module: Module, tree: ast.AST) -> dict[str, str]:
    """What the names that imports bind stand for."""
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{_absolute(module, node)}.{alias.name}"
    return bound


def _called(node: ast.Call) -> str:
    """``np.load`` for ``np.load(...)``; empty for what has no plain name."""
    names: list[str] = []
    function: ast.expr = node.func
    while isinstance(function, ast.Attribute):
        names.append(function.attr)
        function = function.value
    return ".".join([function.id, *reversed(names)]) if isinstance(function, ast.Name) else ""


def _refuses_pickle(node: ast.Call) -> bool:
    given = [keyword.value for keyword in node.keywords if keyword.arg == "allow_pickle"]
    return len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False


@pytest.mark.parametrize("module", list(modules()), ids=lambda module: module.name)
def test_the_rules_hold(module: Module) -> None:
    assert violations(module) == []


def test_every_part_has_a_rule() -> None:
    assert {module.part for module in modules()} == set(MAY_IMPORT)


def test_only_evaluation_imports_attacks() -> None:
    importers = {
        module.part
        for module in modules()
        for _, imported in _imports(module, ast.parse(module.source))
        if imported.startswith("unpoison.attacks")
    }
    assert importers <= {"attacks", "evaluation"}


VIOLATING = [
    ("unpoison.types", "from unpoison.core.config import Settings"),
    ("unpoison.seeds", "import scipy"),
    ("unpoison.core.ispl", "import sklearn"),
    ("unpoison.core.ispl", "def f():\n    from sklearn.base import clone"),
    ("unpoison.core.ispl", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas"),
    ("unpoison.core.ispl", "from unpoison.learners.sklearn import SklearnFactory"),
    ("unpoison.core.ispl", "from unpoison import learners"),
    ("unpoison.core.ispl", "from .. import learners"),
    ("unpoison.core.ispl", "from ..data import load"),
    ("unpoison.core.ispl", "import unpoison.data.load as reading"),
    ("unpoison.core.ispl", "from unpoison import __version__"),
    ("unpoison.core.ispl", "import importlib\nimportlib.import_module('sklearn')"),
    ("unpoison.core.ispl", "import importlib\nimportlib.import_module(name)"),
    ("unpoison.core.ispl", "__import__('unpoison.data')"),
    ("unpoison.learners.sklearn", "from unpoison.data.load import load"),
    ("unpoison.data.load", "from unpoison.core.result import Group"),
    ("unpoison.data.load", "import torch.utils.data"),
    ("unpoison.attacks.triggers", "from unpoison.core.config import Settings"),
    ("unpoison.attacks.triggers", "from unpoison.outputs import write"),
    ("unpoison.attacks.triggers", "from unpoison.defenses.base import Decision"),
    ("unpoison.defenses.controls", "from unpoison.attacks.base import Truth"),
    ("unpoison.defenses.controls", "from unpoison.evaluation import metrics"),
    ("unpoison.defenses.controls", "from unpoison.data.load import load"),
    ("unpoison.defenses.spectral", "import torch"),
    ("unpoison.cleaning", "from unpoison.defenses.base import Decision"),
    ("unpoison.runners.local", "from unpoison.core.tasks import Task"),
    ("unpoison.report.page", "from unpoison.core.pipeline import sanitize"),
    ("unpoison.report.page", "from unpoison.core import pipeline"),
    ("unpoison.outputs.bundle", "from unpoison.cleaning import clean"),
    ("unpoison.outputs.bundle", "from unpoison.core import *"),
    ("unpoison.estimator", "from unpoison.attacks.triggers import Patch"),
    ("unpoison.cleaning", "from unpoison.evaluation import metrics"),
    ("unpoison.estimator", "from unpoison.adapters import judging"),
    ("unpoison.cli.clean", "from unpoison.adapters.pandas import judged"),
    ("unpoison.adapters.art", "from unpoison.outputs import write"),
    ("unpoison.adapters.art", "from unpoison.attacks.base import Truth"),
    ("unpoison.cleaning", "from unpoison.cli.app import main"),
    ("unpoison.evaluation.demo", "from unpoison.cli import app"),
    ("unpoison.cli.demo", "from unpoison.attacks.triggers import Patch"),
    ("unpoison.cli.clean", "import torch"),
    ("unpoison.data.npz", "import pickle"),
    ("unpoison.data.npz", "from pickle import loads"),
    ("unpoison.data.npz", "import numpy as np\nnp.load(path)"),
    ("unpoison.data.npz", "import numpy\nnumpy.load(path, allow_pickle=True)"),
    ("unpoison.data.npz", "import numpy as np\nnp.load(path, allow_pickle=trusted)"),
    ("unpoison.data.npz", "from numpy import load\nload(path)"),
    ("unpoison.data.npz", "from numpy.lib import format as f\nf.read_array(file)"),
    ("unpoison.data.npz", "import joblib\njoblib.load(path)"),
    ("unpoison.data.npz", "assert path"),
    ("unpoison.data.npz", "def f():\n    print('x')"),
]


@pytest.mark.parametrize(("name", "source"), VIOLATING)
def test_a_violation_is_caught(name: str, source: str) -> None:
    assert len(violations(Module(name, source))) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("unpoison.types", "from unpoison.errors import InputError"),
        ("unpoison.core.ispl", "import json, numpy\nfrom numpy.typing import NDArray"),
        ("unpoison.core.ispl", "from . import config\nfrom .trimming import trim\nfrom ..seeds import Seeds"),
        ("unpoison.report.page", "from unpoison.core.result import Group\nfrom unpoison.core import result"),
        ("unpoison.learners.torch", "import torch"),
        ("unpoison.attacks.clean_label", "def f():\n    import torch"),
        ("unpoison.defenses.spectral", "from unpoison.core.tasks import Task\nimport sklearn"),
        ("unpoison.evaluation.metrics", "from unpoison.defenses.base import Decision"),
        ("unpoison.cleaning", "from unpoison import __version__"),
        ("unpoison.adapters.torch", "import torch\nfrom unpoison.estimator import IncompatibilityClustering"),
        ("unpoison.data.npz", "import numpy as np\nnp.load(path, allow_pickle=False)"),
        ("unpoison.data.npz", "import json\njson.load(file)"),
        ("unpoison.cli.demo", "console.print('x')"),
    ],
)
def test_what_is_allowed_is_not_caught(name: str, source: str) -> None:
    assert violations(Module(name, source)) == []


def test_a_relative_import_in_a_package_is_read_from_the_package_itself() -> None:
    assert violations(Module("unpoison.core", "from .config import Settings", is_package=True)) == []
    assert len(violations(Module("unpoison.core", "from ..data import load", is_package=True))) == 1
