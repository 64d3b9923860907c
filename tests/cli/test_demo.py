from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from unittest import mock

import pytest

from unpoison.evaluation.demo import DemoResult, Effect

from .builders import call, run, tree

RESULT = DemoResult(
    n_train=1348,
    n_poisoned=28,
    n_found=27,
    n_clean_removed=13,
    found=27 / 28,
    lost=13 / 1320,
    undefended=Effect(0.977, 0.952),
    cleaned=Effect(0.971, 0.013),
    perfect=Effect(0.975, 0.0),
    verdict="40 of 1,348 samples look planted [/bold].",
    report=Path("somewhere") / "cleaned" / "report.html",
)


@pytest.fixture
def staged() -> mock.Mock:
    """The demonstration without its work."""
    with mock.patch("unpoison.evaluation.demo.run_demo", return_value=RESULT) as run_demo:
        yield run_demo


def test_the_table(staged: mock.Mock, tmp_path: Path) -> None:
    done = call("demo", "--out", tmp_path / "demo", "--seed", "3")
    assert (done.code, done.err) == (0, "")
    staged.assert_called_once()
    assert staged.call_args.args == (tmp_path / "demo",)
    assert staged.call_args.kwargs["seed"] == 3
    assert "Found 27 of 28 planted images; 13 of 1,320 clean images removed (1.0%)." in done.out
    assert "Verdict: 40 of 1,348 samples look planted [/bold].\n" in done.out
    assert figures(done.out, "as it came (no defense)") == ["97.7%", "95.2%"]
    assert figures(done.out, "cleaned by unpoison") == ["97.1%", "1.3%"]
    assert figures(done.out, "with every planted image taken out") == ["97.5%", "0.0%"]
    assert done.out.endswith(f"report: {RESULT.report}\n")


def figures(printed: str, row: str) -> list[str]:
    (line,) = (line for line in printed.splitlines() if row in line)
    return [word for word in line.split() if word.endswith("%")]


def test_json(staged: mock.Mock, tmp_path: Path) -> None:
    done = call("demo", "--out", tmp_path / "demo", "--json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == {**dataclasses.asdict(RESULT), "report": str(RESULT.report)}


def test_the_default_folder_is_one_that_is_free(
    staged: mock.Mock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = ["unpoison-demo", "unpoison-demo-2", "unpoison-demo-3"]
    for name in expected:
        assert call("demo").code == 0
        assert staged.call_args.args == (Path(name),)
        Path(name).mkdir()
        (Path(name) / "taken").touch()
    Path("unpoison-demo-4").mkdir()
    assert call("demo").code == 0
    assert staged.call_args.args == (Path("unpoison-demo-4"),), "empty is free"
    Path("unpoison-demo-4").rmdir()
    Path("unpoison-demo-4").touch()
    assert call("demo").code == 0
    assert staged.call_args.args == (Path("unpoison-demo-5"),)


@pytest.mark.parametrize("place", ["file", "full", "file/below"])
def test_a_place_that_cannot_be_used(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    before = tree(tmp_path)
    done = call("demo", "--out", tmp_path / place)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {tmp_path / place} ")
    assert done.err.count("\n") == 1
    assert tree(tmp_path) == before


@pytest.mark.parametrize("seed", ["-1", "x"])
def test_a_bad_seed(seed: str, tmp_path: Path) -> None:
    done = call("demo", "--out", tmp_path / "demo", "--seed", seed)
    assert (done.code, done.out) == (2, "")
    assert tree(tmp_path) == {}


def test_in_a_real_process(tmp_path: Path) -> None:
    done = run("demo", "--seed", "1", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "Found 25 of 25 planted images" in done.out
    where = tmp_path / "unpoison-demo"
    assert sorted(path.name for path in where.iterdir()) == ["cleaned", "poisoned.npz", "truth.csv"]
    assert call("verify", where / "cleaned").code == 0
    record = json.loads((where / "cleaned" / "run.json").read_text())
    assert record["command"] == "unpoison clean poisoned.npz --out cleaned --seed 1"
