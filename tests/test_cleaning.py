from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.builders import manifest_bytes, manifest_rows, planted, poisoned_npz, tree, write_form
from unpoison import __version__
from unpoison.cleaning import CleanOptions, clean, read_record
from unpoison.core.presets import METHODS, PRESETS
from unpoison.data.load import LoadOptions
from unpoison.errors import CheckpointError, InputError, OutputError
from unpoison.events import Progress
from unpoison.learners.choose import LearnerChoice
from unpoison.learners.defaults import LEARNERS
from unpoison.outputs import WORK_FOLDER
from unpoison.outputs.verify import verify

FEW_MODELS: dict[str, Any] = {"pairs": 1, "epochs": 5, "judge_epochs": 2, "min_steps": 5}
FEW_ROUNDS: dict[str, Any] = {
    "rounds": 2,
    "restarts": 1,
    "first_epochs": 2,
    "epochs": 1,
    "weak_epochs": 5,
    "min_steps": 5,
    "weak_min_steps": 10,
    "self_training_updates": 2,
    "self_training_interval": 1,
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return poisoned_npz(tmp_path_factory.mktemp("data"))


FEW: dict[str, dict[str, Any]] = {
    "ispl": FEW_ROUNDS,
    "groups": {"pairs": 1, "epochs": 2, "judge_epochs": 2, "min_steps": 5},
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_with_both_methods(learner: str, method: str, source: Path, tmp_path: Path) -> None:
    options = CleanOptions(method=method, learner=LearnerChoice(learner), changes=FEW[method])
    record = clean(str(source), tmp_path / "out", options=options)
    assert (record["learner"], record["method"]) == (learner, method)
    rows = manifest_rows(tmp_path / "out")
    assert len(rows) == record["data"]["n"] == 240
    assert any(row["keep"] == "true" for row in rows)
    assert verify(tmp_path / "out") == []


@pytest.mark.parametrize(("method", "preset"), [("groups", "auto"), *[("ispl", name) for name in PRESETS]])
def test_every_named_setting_in_full(method: str, preset: str, source: Path, tmp_path: Path) -> None:
    record = clean(str(source), tmp_path / "out", options=CleanOptions(method=method, preset=preset))
    assert record["settings"]["method"] == method
    restarts = record["settings"].get("restarts", 1)
    assert f"component_{restarts}" in manifest_rows(tmp_path / "out")[0]
    assert record["result"]["removed_fraction"] < 0.5
    assert record["cost"]["trained"] > 0
    assert verify(tmp_path / "out") == []


def test_the_record_tells_what_was_done(source: Path, tmp_path: Path) -> None:
    options = CleanOptions(seed=9, changes=FEW_MODELS)
    record = clean(str(source), tmp_path / "out", options=options, command="by hand")
    assert record == json.loads((tmp_path / "out" / "run.json").read_text())
    assert record == read_record(tmp_path / "out")
    assert record["tool"] == {"name": "unpoison", "version": __version__}
    assert (record["seed"], record["command"], record["settings"]["pairs"]) == (9, "by hand", 1)
    assert record["timings"]["seconds"] > 0


def test_the_defaults_find_what_was_planted(source: Path, tmp_path: Path) -> None:
    record = clean(str(source), tmp_path / "out")
    keep = np.array([row["keep"] == "true" for row in manifest_rows(tmp_path / "out")])
    assert (~keep).tolist() == planted().truth.tolist()
    (group,) = (group for group in record["result"]["groups"] if group["removed"])
    assert (group["label"], group["called"], group["size"]) == ("7", "1", 12)


@pytest.mark.parametrize("method", METHODS)
def test_repeated_gives_the_same_bytes(method: str, source: Path, tmp_path: Path) -> None:
    options = CleanOptions(method=method, seed=4, changes=FEW[method])
    for name in ("first", "second"):
        np.random.seed(len(name))  # the global generator must not matter
        clean(str(source), tmp_path / name, options=options)
    assert manifest_bytes(tmp_path / "first") == manifest_bytes(tmp_path / "second")
    assert tree(tmp_path / "first" / "clean") == tree(tmp_path / "second" / "clean")


def test_progress_is_told_in_order(source: Path, tmp_path: Path) -> None:
    events: list[Progress] = []
    clean(str(source), tmp_path / "out", options=CleanOptions(changes=FEW_MODELS), listener=events.append)
    stages = list(dict.fromkeys(event.stage for event in events))
    assert stages == [
        "reading the data",
        "a model on everything",
        "groups that stand apart",
        "judges",
        "writing the results",
    ]
    for _, told in groupby(events, key=lambda event: event.stage):  # groups are looked for twice
        done = [event.done for event in told]
        assert done == sorted(done)
        assert events[-1].done == events[-1].total


def test_resumed_rounds_are_told_apart(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = CleanOptions(changes=FEW_MODELS, resume=True)
    with monkeypatch.context() as patch:
        patch.setattr("unpoison.cleaning.write", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            clean(str(source), tmp_path / "out", options=options)
    events: list[Progress] = []
    clean(str(source), tmp_path / "out", options=options, listener=events.append)
    assert {event.stage: event.resumed for event in events} == {
        "reading the data": 0,
        "a model on everything": 1,
        "groups that stand apart": 1,
        "judges": 2,
        "writing the results": 0,
    }


def _interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_image_size_is_part_of_an_unfinished_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = write_form("folder", tmp_path, planted())
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("unpoison.cleaning.write", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            clean(str(folder), out, options=CleanOptions(changes=FEW_MODELS))
    other = CleanOptions(changes=FEW_MODELS, resume=True, load=LoadOptions(image_size=4))
    with pytest.raises(CheckpointError, match=r"input was .*'image_size': None.* and is .*'image_size': 4"):
        clean(str(folder), out, options=other)


def test_image_size_is_part_of_a_finished_run(tmp_path: Path) -> None:
    folder, _ = write_form("folder", tmp_path, planted())
    out = tmp_path / "out"
    record = clean(str(folder), out, options=CleanOptions(changes=FEW_MODELS))
    names = ("label", "text", "id_column", "split", "image", "image_size")
    assert record["input"] == dict.fromkeys(names)
    other = CleanOptions(changes=FEW_MODELS, resume=True, load=LoadOptions(image_size=4))
    with pytest.raises(CheckpointError, match=r"input was .*'image_size': None.* and is .*'image_size': 4"):
        clean(str(folder), out, options=other)


def test_an_unknown_setting_is_refused_and_leaves_nothing(source: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no setting 'modles'"):
        clean(str(source), tmp_path / "a" / "out", options=CleanOptions(changes={"modles": 3}))
    assert list(tmp_path.iterdir()) == []


def test_results_do_not_go_into_a_hub_folder_either(tmp_path: Path) -> None:
    source = tmp_path / "saved"
    source.mkdir()
    with pytest.raises((InputError, OutputError), match="source"):
        clean(f"hf:{source}", source / "out")
    assert list(source.iterdir()) == []


def test_an_unknown_learner_is_refused_and_leaves_nothing(source: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown learner 'psychic'"):
        clean(str(source), tmp_path / "out", options=CleanOptions(learner=LearnerChoice("psychic")))
    assert list(tmp_path.iterdir()) == []


def test_what_another_put_there_meanwhile_stays(tmp_path: Path) -> None:
    out = tmp_path / "a" / "out"

    def meddle(event: Progress) -> None:
        if event.stage == "reading the data":
            (out / "notes.txt").write_text("mine")

    with pytest.raises(InputError):
        clean("absent.npz", out, listener=meddle)
    assert tree(tmp_path) == {"a": None, "a/out": None, "a/out/notes.txt": b"mine"}


def test_an_unfinished_run_survives_a_refused_input(source: Path, tmp_path: Path) -> None:
    """Resuming with a source that went missing must not throw the finished rounds away."""
    out = tmp_path / "out"
    rounds = out / WORK_FOLDER / "rounds"
    rounds.mkdir(parents=True)
    (rounds / "subset-000.npz").write_bytes(b"hours of work")
    with pytest.raises(InputError):
        clean(str(tmp_path / "absent.npz"), out, options=CleanOptions(resume=True))
    assert (rounds / "subset-000.npz").read_bytes() == b"hours of work"


def test_a_record_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"run\.json cannot be read"):
        read_record(tmp_path)
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(OutputError, match="was not written by unpoison"):
        read_record(tmp_path)


def test_the_input_is_never_changed(source: Path, tmp_path: Path) -> None:
    before = source.read_bytes(), source.stat().st_mtime_ns
    clean(str(source), tmp_path / "out", options=CleanOptions(changes=FEW_MODELS))
    assert (source.read_bytes(), source.stat().st_mtime_ns) == before
    assert [path.name for path in source.parent.iterdir()] == [source.name]


@pytest.mark.parametrize("learner", ["logistic", "boosting"])
@pytest.mark.parametrize("method", METHODS)
def test_the_smallest_data_there_can_be(learner: str, method: str, tmp_path: Path) -> None:
    """Two classes of two samples: nothing can be found, and nothing may break."""
    path = tmp_path / "four.npz"
    np.savez(path, x=np.array([[0.0, 1], [0, 2], [5, 1], [5, 2]]), y=np.array([0, 0, 1, 1]))
    options = CleanOptions(method=method, learner=LearnerChoice(learner), changes=FEW[method])
    record = clean(str(path), tmp_path / "out", options=options)
    assert record["data"]["n"] == 4
    assert verify(tmp_path / "out") == []


def test_features_that_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "constant.npz"
    np.savez(path, x=np.ones((40, 3)), y=np.arange(40) % 2)
    record = clean(str(path), tmp_path / "out", options=CleanOptions(changes=FEW_MODELS))
    assert record["result"]["n_removed"] == 0
