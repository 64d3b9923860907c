"""A pytest plugin, ``-p minimal_install``: all but numpy, scikit-learn and the tests' tools is absent."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

ABSENT = frozenset(
    {
        "click",
        "rich",
        "PIL",
        "jinja2",
        "pyarrow",
        "pandas",
        "torch",
        "ray",
        "datasets",
        "matplotlib",
        "imblearn",
    }
)


class Blocker(MetaPathFinder):
    """Answers as if the packages were not installed."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {fullname!r} (minimal install)", name=fullname)
        return None


if already := ABSENT & set(sys.modules):
    raise RuntimeError(f"loaded before they could be made absent: {sorted(already)}")
sys.meta_path.insert(0, Blocker())
