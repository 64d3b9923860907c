"""Every example in a docstring runs and says what it says."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"


def modules_with_examples() -> list[str]:
    names = []
    for path in sorted((SOURCE / "unpoison").rglob("*.py")):
        if ">>>" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(SOURCE).with_suffix("").parts
            names.append(".".join(part for part in parts if part != "__init__"))
    return names


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


def test_there_are_examples() -> None:
    assert {"unpoison.seeds", "unpoison.estimator", "unpoison.data.load"} <= set(modules_with_examples())


def test_the_python_example_of_the_readme_runs() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    cleaner = names["cleaner"]
    assert cleaner.keep_.sum() == len(names["X_clean"]) == len(names["y_clean"])  # type: ignore[attr-defined, arg-type]
