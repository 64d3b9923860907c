from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unpoison.core.checkpoint import FolderCheckpoints, NoCheckpoints, check_same
from unpoison.errors import CheckpointError
from unpoison.types import Arrays

IDENTITY: dict[str, object] = {"data": "abc", "seed": 7, "settings": {"alpha": 0.25, "rounds": 8}}
ARRAYS: Arrays = {
    "component": np.array([3, 1, 2], dtype=np.int64),
    "losses": np.array([np.nan, np.inf, 0.1], dtype=np.float32),
    "keep": np.array([True, False]),
    "empty": np.zeros((0, 4)),
    "cost": np.array([5, 6], dtype=np.int64),
}


def folder(path: Path, **changes: Any) -> FolderCheckpoints:
    return FolderCheckpoints(path, identity=IDENTITY | changes)


def assert_same(found: Arrays | None, wanted: Arrays) -> None:
    assert found is not None
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


def test_what_is_saved_is_loaded_bit_for_bit(tmp_path: Path) -> None:
    folder(tmp_path).save("restart-0-round-1", ARRAYS)
    assert_same(folder(tmp_path).load("restart-0-round-1"), ARRAYS)


def test_tasks_do_not_mix(tmp_path: Path) -> None:
    checkpoints = folder(tmp_path)
    checkpoints.save("a", {"cost": np.array([1, 1])})
    checkpoints.save("b", {"cost": np.array([2, 2])})
    assert_same(checkpoints.load("a"), {"cost": np.array([1, 1])})
    assert checkpoints.load("c") is None


def test_saving_again_replaces(tmp_path: Path) -> None:
    checkpoints = folder(tmp_path)
    checkpoints.save("a", {"cost": np.array([1, 1])})
    checkpoints.save("a", {"cost": np.array([2, 2])})
    assert_same(checkpoints.load("a"), {"cost": np.array([2, 2])})


def test_nothing_but_finished_files_is_left(tmp_path: Path) -> None:
    folder(tmp_path / "deep" / "down").save("a", ARRAYS)
    assert sorted(path.name for path in (tmp_path / "deep" / "down").iterdir()) == ["a.npz", "identity.json"]


def test_a_write_that_breaks_off_leaves_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: io.BytesIO, **arrays: object) -> None:
        file.write(b"half of it")
        raise OSError("no space left on device")

    checkpoints = folder(tmp_path)
    checkpoints.save("old", ARRAYS)
    monkeypatch.setattr(np, "savez", full)
    for name in ("new", "old"):
        with pytest.raises(OSError, match="no space"):
            checkpoints.save(name, {"cost": np.array([9, 9])})
    assert not (tmp_path / "new.npz").exists()
    assert_same(checkpoints.load("old"), ARRAYS)


def test_no_pickle_is_ever_loaded(tmp_path: Path) -> None:
    checkpoints = folder(tmp_path)
    np.savez(tmp_path / "a.npz", members=np.array(["x"]), x=np.array([{"a": 1}], dtype=object))
    assert checkpoints.load("a") is None


def whole_file(tmp_path: Path) -> tuple[FolderCheckpoints, Path, bytes]:
    checkpoints = folder(tmp_path)
    checkpoints.save("a", {"component": np.arange(4), "cost": np.array([1, 2])})
    path = tmp_path / "a.npz"
    return checkpoints, path, path.read_bytes()


def test_a_file_cut_short_anywhere_is_no_checkpoint_and_removed(tmp_path: Path) -> None:
    checkpoints, path, whole = whole_file(tmp_path)
    for length in range(0, len(whole), 3):
        path.write_bytes(whole[:length])
        assert checkpoints.load("a") is None
        assert not path.exists()


def test_a_flipped_bit_anywhere_is_noticed_or_harmless(tmp_path: Path) -> None:
    checkpoints, path, whole = whole_file(tmp_path)
    unnoticed = 0
    for position in range(len(whole)):
        for bit in (1, 64):
            path.write_bytes(whole[:position] + bytes([whole[position] ^ bit]) + whole[position + 1 :])
            found = checkpoints.load("a")
            if found is not None:
                unnoticed += 1
                assert_same(found, {"component": np.arange(4), "cost": np.array([1, 2])})
    assert unnoticed < len(whole)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x00" * 500, b"text\n", b"\x80\x04."])
def test_rubbish_is_no_checkpoint(tmp_path: Path, content: bytes) -> None:
    checkpoints, path, _ = whole_file(tmp_path)
    path.write_bytes(content)
    assert checkpoints.load("a") is None


def test_a_bare_array_is_no_checkpoint(tmp_path: Path) -> None:
    checkpoints, path, _ = whole_file(tmp_path)
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    assert checkpoints.load("a") is None


# --- identity -------------------------------------------------------------------------------------------


def test_the_same_run_goes_on(tmp_path: Path) -> None:
    folder(tmp_path)
    folder(tmp_path)
    assert json.loads((tmp_path / "identity.json").read_text()) == IDENTITY


@pytest.mark.parametrize(
    ("changes", "key", "old", "new"),
    [
        ({"seed": 8}, "seed", "7", "8"),
        ({"data": "abd"}, "data", "'abc'", "'abd'"),
        ({"settings": {"alpha": 0.5, "rounds": 8}}, "settings", "{'alpha': 0.25", "{'alpha': 0.5"),
        ({"learner": "mlp"}, "learner", "None", "'mlp'"),
        ({"seed": "7"}, "seed", "7", "'7'"),
    ],
)
def test_another_run_is_refused_and_the_difference_named(
    tmp_path: Path, changes: dict[str, Any], key: str, old: str, new: str
) -> None:
    folder(tmp_path).save("a", ARRAYS)
    with pytest.raises(CheckpointError) as caught:
        folder(tmp_path, **changes)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path} belongs to another run: {key} was {old}")
    assert f"and is {new}" in message
    assert f"Use the same {key}, or start anew in an empty folder." in message
    assert_same(folder(tmp_path).load("a"), ARRAYS)


def test_a_key_that_is_gone_is_a_difference(tmp_path: Path) -> None:
    folder(tmp_path, learner="mlp")
    with pytest.raises(CheckpointError, match="learner was 'mlp' and is None now"):
        folder(tmp_path)


def test_what_json_writes_alike_is_alike() -> None:
    check_same({"a": [1, 2], "b": {"1": 0.5}}, {"a": (1, 2), "b": {1: 0.5}}, where="here")


@pytest.mark.parametrize("content", ["", "{", "[1]", "5", "null", '"text"'])
def test_an_unreadable_identity_is_refused_with_the_remedy(tmp_path: Path, content: str) -> None:
    folder(tmp_path)
    (tmp_path / "identity.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"identity\.json cannot be read .* Remove the folder"):
        folder(tmp_path)


def test_no_checkpoints_keeps_nothing() -> None:
    nothing = NoCheckpoints()
    nothing.save("a", ARRAYS)
    assert nothing.load("a") is None


def test_the_name_of_the_list_of_members_is_refused(tmp_path: Path) -> None:
    """It would be overwritten, and what is loaded would be something else."""
    with pytest.raises(ValueError, match="is taken"):
        FolderCheckpoints(tmp_path, identity={}).save("task", {"members": np.zeros(3)})
    assert not (tmp_path / "task.npz").exists()
