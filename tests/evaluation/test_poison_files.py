from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from unpoison.attacks.adaptive import Adaptive
from unpoison.attacks.base import Samples, Truth
from unpoison.attacks.labels import OneToOne
from unpoison.attacks.triggers import Patch, Watermark
from unpoison.errors import InputError, OutputError
from unpoison.evaluation.forms import Written
from unpoison.evaluation.poison_files import check_place, check_preview, plain, staging_for, write_truth


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_folder_appears_whole(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    with staging_for(out) as staging:
        (staging / "file").write_text("x", encoding="utf-8")
        assert not out.exists()
    assert names(out) == ["file"]
    assert names(out.parent) == ["out"]


def test_an_empty_folder_and_a_link_to_one_are_used(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with staging_for(tmp_path / "link") as staging:
        (staging / "file").touch()
    assert names(tmp_path / "real") == ["file"]
    assert names(tmp_path) == ["link", "real"]


@pytest.mark.parametrize("error", [InputError("no"), KeyboardInterrupt(), OSError("full")])
def test_nothing_is_left_of_what_failed(tmp_path: Path, error: BaseException) -> None:
    def fail() -> None:
        with staging_for(tmp_path / "out") as staging:
            (staging / "file").touch()
            raise error

    with pytest.raises(OutputError if isinstance(error, OSError) else type(error)):
        fail()
    assert names(tmp_path) == []


def test_what_someone_put_there_meanwhile_is_not_lost(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def late() -> None:
        with staging_for(out) as staging:
            (staging / "file").touch()
            out.mkdir()
            (out / "theirs").touch()

    with pytest.raises(OutputError, match="could not be written"):
        late()
    assert names(tmp_path) == ["out"]
    assert names(out) == ["theirs"]


def test_asking_for_a_place_leaves_no_trace(tmp_path: Path) -> None:
    check_place("digits", tmp_path / "a" / "b")
    assert names(tmp_path) == []
    (tmp_path / "empty").mkdir()
    check_place("digits", tmp_path / "empty")
    assert names(tmp_path / "empty") == []


def test_places_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(OutputError, match="is not empty"):
        check_place("digits", tmp_path / "full")
    with pytest.raises(OutputError, match="is a file"):
        check_place("digits", tmp_path / "full" / "file")
    for source in (str(tmp_path / "full"), f"hf:{tmp_path / 'full'}"):
        with pytest.raises(OutputError, match="lies inside the source"):
            check_place(source, tmp_path / "full" / "out")


def test_names_for_the_picture(tmp_path: Path) -> None:
    check_preview(tmp_path / "a.PNG", tmp_path / "out")
    check_preview(tmp_path / "out" / "a.png", tmp_path / "out")
    (tmp_path / "there.png").touch()
    with pytest.raises(OutputError, match="exists already"):
        check_preview(tmp_path / "there.png", tmp_path / "out")
    with pytest.raises(InputError, match=r"ends in \.png"):
        check_preview(tmp_path / "a.jpg", tmp_path / "out")
    with pytest.raises(OutputError, match="no such folder"):
        check_preview(tmp_path / "absent" / "a.png", tmp_path / "out")


def test_the_truth_is_in_the_order_that_is_read(tmp_path: Path) -> None:
    poisoned = Samples(np.zeros((3, 2)), np.array([0, 1, 1]), ("cat", "d,o\ng"))
    truth = Truth(np.array([False, True, False]), np.array([False, False, True]), np.array([0, 0, 1]))
    written = Written(("z", "x", "y"), np.array([2, 0, 1]))
    write_truth(tmp_path / "truth.csv", written, ["a", "b", "c"], poisoned, truth)
    with (tmp_path / "truth.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["id", "row", "planted", "cover", "original_label", "label", "original_id"],
        ["z", "0", "false", "true", "d,o\ng", "d,o\ng", "c"],
        ["x", "1", "false", "false", "cat", "cat", "a"],
        ["y", "2", "true", "false", "cat", "d,o\ng", "b"],
    ]


def test_an_attack_in_plain_values() -> None:
    attack = Adaptive(OneToOne(0, 1), 0.5, Patch(value=(1, 2, 3)), np.zeros(1000, dtype=np.int64))
    facts = plain(attack)
    assert facts["type"] == "Adaptive"
    assert facts["relabelling"] == {"type": "OneToOne", "source": 0, "target": 1, "count": None}
    assert facts["mark"]["value"] == [1, 2, 3]
    assert facts["components"].keys() == {"dtype", "shape", "sha256"}, "not a thousand numbers"
    assert plain(Watermark.named("peace"))["alpha"]["shape"] == [8, 8]
