"""``import unpoison`` is for every script that uses it: it must cost nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
HEAVY = ("sklearn", "click", "rich", "PIL", "jinja2", "pyarrow", "pandas", "torch", "scipy", "joblib")


def in_fresh_process(code: str) -> str:
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_imports_nothing_heavy() -> None:
    loaded = json.loads(in_fresh_process("import unpoison, json, sys; print(json.dumps(list(sys.modules)))"))
    assert [name for name in HEAVY if name in loaded] == []


def test_takes_under_half_a_second() -> None:
    code = "import time; start = time.perf_counter(); import unpoison; print(time.perf_counter() - start)"
    assert min(float(in_fresh_process(code)) for _ in range(3)) < 0.5


def test_the_public_names_load_when_asked_for() -> None:
    code = (
        "import sys, unpoison\n"
        "from unpoison import Sanitization\n"
        "assert 'sklearn' not in sys.modules\n"
        "from unpoison import *\n"
        "assert IncompatibilityClustering is unpoison.IncompatibilityClustering\n"
        "print(__version__, Sanitization.__name__, IncompatibilityClustering.__name__)"
    )
    assert in_fresh_process(code).split()[1:] == ["Sanitization", "IncompatibilityClustering"]


def test_an_unknown_name_is_an_attribute_error() -> None:
    import unpoison

    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = unpoison.nonsense


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_the_program_answers_simple_questions_without_the_heavy_parts(argument: str) -> None:
    code = (
        "import sys\n"
        "from unpoison.cli.app import main\n"
        f"sys.argv = ['unpoison', {argument!r}]\n"
        "main()\n"
        "print([name for name in ('sklearn', 'scipy', 'pyarrow', 'jinja2', 'PIL') if name in sys.modules])"
    )
    assert in_fresh_process(code).splitlines()[-1] == "[]"
