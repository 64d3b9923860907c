"""docs/paper.md goes through the paper item by item: what it names is there, and says what the code does."""

from __future__ import annotations

import re
import runpy
import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from unpoison.core.config import IsplSettings
from unpoison.core.presets import PAPER_CIFAR10, PAPER_GTSRB
from unpoison.defenses.trimmed_loss import TrimmedLoss
from unpoison.evaluation.figures import FIGURES, OF_FOLDERS
from unpoison.evaluation.scenarios import WATERMARK_FILES, of_table, tables
from unpoison.learners.recipes import PAPER, RECIPES

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
PICTURES = {
    "peace sign": "peace", "letter A": "letter-a", "bullet holes": "bullet-holes",
    "colourful patch": "patch",
}  # fmt: skip


def section(title: str) -> str:
    (found,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def rows(title: str) -> list[list[str]]:
    """The cells of the rows of a section's table, without its header."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_where_each_definition_and_algorithm_is() -> None:
    package = ROOT / "src" / "unpoison"
    for item, where, *_ in rows("Definitions, theorems, algorithms"):
        folder = Path()
        for name in quoted(where):
            if "/" in name:
                folder = (package / name).parent if name.endswith(".py") else package / name
            path = package / name if "/" in name else folder / name
            if name.endswith((".py", "/")):
                assert path.exists(), (item, name)
            else:  # a function or class of the file before it
                assert any(
                    re.search(rf"^(def|class) {name}\b", file.read_text(encoding="utf-8"), re.MULTILINE)
                    for file in folder.glob("*.py")
                ), (item, name)


def test_the_settings_are_fields_or_options() -> None:
    known = {field.name for field in fields(IsplSettings)} | {*PAPER, *RECIPES}
    values = {"3p", "fits"}
    for name, *_, ours in rows("Settings"):
        for word in quoted(ours):
            *_, last = word.split()
            assert last in known | values, name


def test_the_settings_say_the_presets_numbers() -> None:
    text = {name: said for name, said, *_ in rows("Settings")}
    for numbers, name in (
        ((PAPER_CIFAR10.rounds, PAPER_GTSRB.rounds, PAPER_CIFAR10.restarts), "rounds; restarts"),
        ((PAPER_CIFAR10.first_epochs, PAPER_CIFAR10.epochs, PAPER_CIFAR10.weak_epochs),
         "epochs: first, later, weak learner"),
    ):  # fmt: skip
        told = re.sub(r"CIFAR-10", "", text[name])
        assert tuple(map(int, re.findall(r"\d+", told))) == numbers
    one_over = {name: round(1 / preset.alpha) for name, preset in
                (("CIFAR-10", PAPER_CIFAR10), ("GTSRB", PAPER_GTSRB))}  # fmt: skip
    said = ", ".join(f"1/{k} on {name}" for name, k in one_over.items())
    assert text["alpha; eta"] == f"{said}; {PAPER_CIFAR10.momentum}"
    training = PAPER_CIFAR10.self_training_updates * PAPER_CIFAR10.self_training_interval
    assert text["self-training"] == (
        f"{training} epochs, update every {PAPER_CIFAR10.self_training_interval}, "
        f"momentum {PAPER_CIFAR10.self_training_momentum}"
    )


def test_every_table_and_figure_is_there() -> None:
    named = {name for _, names, _ in rows("Tables") for name in quoted(names)}
    assert named == set(tables())
    figures = set(re.findall(r"unpoison bench figure ([\w-]+)", section("Figures")))
    figures |= {"imagenette"}  # by the same command, named after sleeper-agent
    assert figures == {*FIGURES, *OF_FOLDERS} - {"incompatibility"}  # a script of its own, with a table
    assert "`imagenette`" in section("Figures")


def test_the_command_of_the_incompatibility_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    (command,) = (each for each in quoted(section("Figures")) if "benchmarks/incompatibility.py" in each)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    _, script, *arguments = shlex.split(command)
    given: Any = runpy.run_path(str(ROOT / script))["_parser"]().parse_args(arguments)
    assert (given.family, given.direction) == (["dirty-label", "gan"], ["clean"])


def test_which_watermark_goes_with_which_pair() -> None:
    told = {
        (dataset, tuple(map(int, pair.split("-")))): PICTURES[picture]
        for picture, *columns in rows("Watermarks by pair")
        for dataset, pairs in zip(("cifar10", "gtsrb"), columns, strict=True)
        for pair in pairs.split(", ")
    }
    assert told == {
        (dataset, (each.options["source"], each.options["target"])): each.options["trigger"]
        for dataset in ("cifar10", "gtsrb")
        for each in of_table(f"{dataset}-watermark")
    }
    assert quoted(section("Watermarks by pair"))[1:] == list(WATERMARK_FILES.values())


def test_what_differs_is_what_the_code_has() -> None:
    ours = {item: said for item, _, said, _ in rows("Where we differ, and why")}
    assert ours["trimmed loss: how many rounds"] == str(TrimmedLoss().rounds)
