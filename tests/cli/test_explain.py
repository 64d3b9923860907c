from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

from finished import decision, finished_run, save_overrides
from unpoison.core.result import Group, VoteRecord
from unpoison.data.load import load
from unpoison.outputs import RunFacts, write
from unpoison.outputs.explanation import explain_sample
from unpoison.outputs.stored import read_stored
from unpoison.reviewing import apply

from .builders import call, manifest_rows, run
from .test_app import NASTY, assert_plain


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished_run("npz", tmp_path_factory.mktemp("explain"))


def values(printed: str) -> dict[str, str]:
    lines = printed.split("\n\n")[0].splitlines()
    return {line[:11].strip(): line[12:] for line in lines}


def test_a_removed_sample(out: Path) -> None:
    sample = next(row for row in manifest_rows(out) if row["keep"] == "false")
    done = call("explain", out, sample["id"])
    assert (done.code, done.err) == (0, "")
    found = values(done.out)
    assert found["sample"] == sample["id"]
    assert found["source"] == sample["source"]
    assert (found["label"], found["called"]) == ("'seven'", "'one'")
    assert found["decision"] == "removed by the run"
    assert found["suspicion"].startswith(f"{float(sample['suspicion']):.3f}, more than 9")
    assert found["components"] == "group 1"
    assert found["group"] == (
        "12 samples of its label were judged together and removed, with this sample, called 'one', "
        "met 13, agreement 25.0%"
    )
    near = found["most like"].split("; ")
    labels = {row["id"]: row["label"] for row in manifest_rows(out) if row["keep"] == "true"}
    for place, label in zip(near, ("seven", "one"), strict=True):
        neighbour = place.split("'")[1]
        assert labels[neighbour] == label
        assert place.endswith(f"labelled '{label}'")
    assert "judge 1" in done.out
    assert "3.000" in done.out
    assert "loss on its own label" in done.out
    assert "votes       3 'one'" in done.out


def test_a_kept_sample_and_who_was_not_asked(out: Path) -> None:
    sample = manifest_rows(out)[1]
    done = call("explain", out, sample["id"])
    assert values(done.out)["decision"] == "kept by the run"
    assert values(done.out)["components"] == "the rest"
    assert "(not asked: trained on it)" in done.out
    assert f"votes       3 '{sample['label']}'" in done.out


def test_after_a_review(out: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(out, tmp_path / "out"))
    removed = next(row["id"] for row in manifest_rows(copy) if row["keep"] == "false")
    apply(copy, save_overrides(tmp_path / "o.json", copy, keep=[removed]))
    found = explain_sample(read_stored(copy), removed)
    assert (found.keep, found.run_keep, found.reviewed) == (True, False, True)
    assert values(call("explain", copy, removed).out)["decision"] == "kept in a review (removed by the run)"


def test_losses_over_rounds_and_restarts(tmp_path: Path) -> None:
    dataset = load("digits")
    base = decision(dataset, [0, 10, 20], "1")
    n = len(dataset)
    losses = np.arange(6, dtype=np.float32)[:, None].repeat(n, axis=1)
    names = tuple(f"restart {r + 1}, round {i + 1}" for r in range(2) for i in range(3))
    votes = VoteRecord(names, np.ones((6, n), dtype=np.int32), losses, np.ones((6, n), dtype=np.bool_))
    components = np.array([[2] * n, [-1] * n])
    result = dataclasses.replace(base, votes=votes, components=components)
    facts = RunFacts(settings={}, method="ispl", learner="l", seed=0, seconds=0.0)
    write(dataset, result, tmp_path / "out", run=facts)
    done = call("explain", tmp_path / "out", "digits/0000")
    assert values(done.out)["components"] == "round 3 in 1 of 2 restarts, left over in 1 of 2 restarts"
    lines = [line for line in done.out.splitlines() if "│ restart" in line]
    assert [line.replace("│", " ").split() for line in lines] == [
        ["restart", "1", "1", "0.00", "1", "1.00", "1", "2.00"],
        ["restart", "2", "1", "3.00", "1", "4.00", "1", "5.00"],
    ]
    assert "votes       6 '1'" in done.out
    assert "loss on its own label" in done.out


def test_of_several_groups_in_a_class_the_sample_s_own_is_told(tmp_path: Path) -> None:
    """Zeros of digits: two groups, of which the second went with a sample that is in neither."""
    dataset = load("digits")
    base = decision(dataset, [20, 30, 36], "1")
    components = np.zeros((1, len(dataset)), dtype=np.int64)
    components[0, [0, 10]], components[0, [20, 30]] = 1, 2
    groups = (Group(0, 2, False, 1, {"agreement": 0.5}), Group(0, 2, True, 1, {"agreement": 0.75}))
    result = dataclasses.replace(base, components=components, groups=groups)
    facts = RunFacts(settings={}, method="groups", learner="l", seed=0, seconds=0.0)
    write(dataset, result, tmp_path / "out", run=facts)
    stored = read_stored(tmp_path / "out")
    for sample, removed, is_member in (
        (0, False, True),
        (20, True, True),
        (36, True, True),
        (48, True, False),
    ):
        group = explain_sample(stored, f"digits/{sample:04d}").group
        assert group is not None
        assert (group.removed, group.is_member) == (removed, is_member), sample
        assert group.evidence[0].share == (0.75 if removed else 0.5)


def test_the_reason_of_the_group_of_the_sample(tmp_path: Path) -> None:
    dataset = load("digits")
    base = decision(dataset, [20, 30], "1")
    components = np.zeros((1, len(dataset)), dtype=np.int64)
    components[0, [0, 10]], components[0, [20, 30]] = 1, 2
    groups = (
        Group(0, 2, False, 1, {"met": 8.0}, undecided=True, reason="Undecided: it is [bold]near."),
        Group(0, 2, True, 1, {"met": 13.0}, reason="Planted: it dissolves."),
    )
    result = dataclasses.replace(base, components=components, groups=groups)
    facts = RunFacts(settings={}, method="groups", learner="l", seed=0, seconds=0.0)
    write(dataset, result, tmp_path / "out", run=facts)
    undecided, planted, other = (
        values(call("explain", tmp_path / "out", f"digits/{sample:04d}").out) for sample in (0, 20, 48)
    )
    assert (undecided["components"], undecided["reason"]) == ("group 1", "Undecided: it is [bold]near.")
    assert "were judged together and kept as undecided, with this sample" in undecided["group"]
    assert (planted["components"], planted["reason"]) == ("group 2", "Planted: it dissolves.")
    assert "were judged together and removed, with this sample" in planted["group"]
    assert "without this sample" in other["group"]
    assert "reason" not in other


def test_a_result_without_votes(tmp_path: Path) -> None:
    dataset = load("digits")
    result = dataclasses.replace(decision(dataset, [0], "1"), votes=None, groups=())
    facts = RunFacts(settings={}, method="ispl", learner="l", seed=0, seconds=0.0)
    write(dataset, result, tmp_path / "out", run=facts)
    done = call("explain", tmp_path / "out", "digits/0000")
    assert done.code == 0
    assert "votes" not in done.out
    assert "group  " not in done.out


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("sample 01", "did you mean 'sample 010' or 'sample 011' or 'sample 012'?"),
        ("simple 017", "did you mean 'sample 017' or"),
        ("\x1b[2J", "'\\x1b[2J'; the column id of manifest.csv has them all"),
        ("", "the column id of manifest.csv has them all"),
        ("x" * 5000, "the column id of manifest.csv has them all"),
    ],
)
def test_an_unknown_id_names_similar_ones(wanted: str, says: str, out: Path) -> None:
    done = call("explain", out, wanted)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert done.err.count("\n") == 1
    assert_plain(done.err)


def test_what_is_no_finished_run_or_was_changed(out: Path, tmp_path: Path) -> None:
    done = call("explain", tmp_path / "absent", "x")
    assert (done.code, "no such folder" in done.err) == (2, True)
    copy = Path(shutil.copytree(out, tmp_path / "out"))
    (copy / "evidence.npz").write_bytes(b"PK")
    done = call("explain", copy, "sample 001")
    assert (done.code, "unpoison verify" in done.err) == (2, True)


def test_names_do_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    dataset = load("digits")
    ids = tuple(f"{NASTY}{i}" for i in range(len(dataset)))
    names = tuple(f"{NASTY}{i}" for i in range(10))
    hostile = dataclasses.replace(dataset, ids=ids, sources=ids, class_names=names)
    result = decision(hostile, [0, 10, 20], names[1])
    write(
        hostile,
        result,
        tmp_path / "out",
        run=RunFacts(settings={}, method="m", learner="l", seed=0, seconds=0),
    )
    done = call("explain", tmp_path / "out", ids[10])
    assert done.code == 0
    assert_plain(done.out)
    assert "[bold]" in done.out, "no markup is obeyed"


def test_in_a_real_process(out: Path) -> None:
    done = run("explain", out, "sample 003", cwd=out.parent)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("sample      sample 003\n")
