from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from unpoison.data.load import load

from .builders import Outcome, call, planted, write_form
from .test_app import NASTY, assert_plain

QUICK = ("--repeats", "4", "--learner", "logistic")


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Digits, and a file of two random halves of 120 of them and of 80 more, each called by the next name."""
    root = tmp_path_factory.mktemp("digits")
    data = load("digits")
    labels = data.labels[:200].copy()
    labels[120:] = (labels[120:] + 1) % 10
    ids = np.array([f"digit {i}" for i in range(200)])
    np.savez(root / "digits.npz", x=data.features[:200], y=labels, ids=ids)
    halves = np.random.default_rng(0).permutation(np.repeat(["left", "right"], 60)).tolist()
    lines = [f"digit {i},{name}\n" for i, name in enumerate([*halves, *["renamed"] * 80])]
    (root / "sets.csv").write_text("id,set\n" + "".join(lines))
    (root / "halves.csv").write_text("id,set\n" + "".join(lines[:120]))
    return root


def measured(root: Path, *extra: str | Path, sets: str = "sets.csv") -> Outcome:
    return call("measure", root / "digits.npz", "--sets", root / sets, *QUICK, *extra)


def test_what_is_printed(digits: Path) -> None:
    done = measured(digits)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == (
        "Error on a set alone, and when models train on another set with it (4 models each, 95% intervals):"
    )
    assert lines[1].split() == ["set", "with", "alone", "with", "it", "change", "in", "points"]
    table = {tuple(line.split()[:2]): line for line in lines[2:8]}
    assert set(table) == {(s, t) for s in SETS for t in SETS if s != t}
    assert table["left", "renamed"].endswith("  incompatible")
    assert "incompatible" not in table["left", "right"] + table["right", "left"]
    assert any(
        line.startswith("'renamed' is incompatible with 'left': with it in training, models get ")
        for line in lines
    )
    assert lines[-1].startswith("Cost: 24 models trained in ")


SETS = ("left", "right", "renamed")


def test_json_is_the_record_and_nothing_else(digits: Path) -> None:
    record = json.loads(measured(digits, "--json", "--seed", "3", "--alpha", "0.25", "-q").out)
    assert set(record["sets"]) == set(SETS)
    decisions = {(pair["of"], pair["given"]): pair["decision"] for pair in record["pairs"]}
    assert decisions["right", "renamed"] == "incompatible"
    assert (record["seed"], record["settings"]["alpha"], record["settings"]["repeats"]) == (3, 0.25, 4)
    assert record["command"].startswith("unpoison measure ")
    assert record["cost"]["models"] == 24


def test_halves_of_the_same_are_not_incompatible(digits: Path) -> None:
    done = measured(digits, sets="halves.csv")
    assert (done.code, done.err) == (0, "")
    assert "incompatible" not in done.out
    assert "compatible (the second set helps with the first)" in done.out or "undecided" in done.out


def test_quiet_prints_nothing(digits: Path) -> None:
    assert measured(digits, "-q", sets="halves.csv") == Outcome(0, "", "")


def test_epochs_reach_the_learner(digits: Path) -> None:
    few, more = (
        json.loads(measured(digits, "--json", "--learner", "sgd", "--epochs", epochs, sets="halves.csv").out)
        for epochs in ("1", "3")
    )
    assert more["cost"]["trained"] == 3 * few["cost"]["trained"]


@pytest.mark.parametrize("form", ["csv", "folder"])
def test_other_sources_by_their_ids(form: str, tmp_path: Path) -> None:
    data = planted()
    source, options = write_form(form, tmp_path, data)
    ids = load(source) if form == "folder" else None
    names = ids.ids if ids is not None else data.ids
    sets = tmp_path / "sets.csv"
    sets.write_text("id,set\n" + "".join(f'"{name}",{i % 2}\n' for i, name in enumerate(names)))
    done = call("measure", source, "--sets", sets, *options, *QUICK)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[2].split()[:2] == ["0", "1"]


def test_a_picture(digits: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    target = tmp_path / "matrix.png"
    done = measured(digits, "--picture", target, sets="halves.csv")
    assert (done.code, done.err) == (0, "")
    assert target.read_bytes().startswith(b"\x89PNG")
    assert done.out.splitlines()[-1] == f"Picture: {target}"


BAD = {
    "no sets": ([], "Missing option '--sets'"),
    "absent": (["--sets", "absent.csv"], "absent.csv is no file"),
    "alpha": (["--alpha", "0"], "'alpha' parameter must be a share in (0, 1]. Got 0.0"),
    "alpha that is no number": (["--alpha", "nan"], "'alpha' parameter must be a share in (0, 1]. Got nan"),
    "repeats": (["--repeats", "1"], "'repeats' parameter must be at least 2"),
    "confidence": (["--confidence", "1"], "'confidence' parameter must be in (0.5, 1)"),
    "learner": (["--learner", "nonsense"], "unknown learner 'nonsense'"),
    "picture": (["--picture", "matrix.txt"], "a figure is a file that ends in .png"),
    "folder of the picture": (["--picture", "nowhere/matrix.png"], "could not be written"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_options_are_two(name: str, digits: Path) -> None:
    pytest.importorskip("matplotlib")
    options, message = BAD[name]
    given = options if name in ("no sets", "absent") else ["--sets", digits / "halves.csv", *options]
    done = call("measure", digits / "digits.npz", *given)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_a_bad_file_of_sets_is_one_line_and_two(digits: Path, tmp_path: Path) -> None:
    sets = tmp_path / "sets.csv"
    sets.write_text("id,set\ndigit 1,a\ndigit 2,b\ndigit 999,a\n")
    done = call("measure", digits / "digits.npz", "--sets", sets, *QUICK)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: sets.csv:4: digits.npz has no sample with the id 'digit 999'")
    assert done.err.count("\n") == 1


def test_nasty_names_of_sets_reach_no_terminal(digits: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    sets, target = tmp_path / "sets.csv", tmp_path / "matrix.svg"
    names = [NASTY.replace("\n", " ").replace("\0", ""), "$\\frac{1}{"]
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    lines = [f"digit {i},{quoted[i % 2]}\n" for i in range(120)]
    sets.write_text("id,set\n" + "".join(lines), encoding="utf-8")
    done = call("measure", digits / "digits.npz", "--sets", sets, *QUICK, "--picture", target)
    assert done.code == 0
    assert_plain(done.out)
    assert "<b>" not in target.read_text(encoding="utf-8")
