from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pickle
import shutil
import struct
import subprocess
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from PIL import Image

from finished import decision
from unpoison.data.load import LoadOptions, load
from unpoison.outputs import WORK_FOLDER

from .builders import (
    FORMS,
    Outcome,
    call,
    command,
    environment,
    manifest_bytes,
    manifest_rows,
    planted,
    poisoned_npz,
    run,
    tree,
    write_form,
)

RESULTS = {"clean", "evidence.npz", "manifest.csv", "manifest.parquet", "report.html", "run.json"}


# --- input that cannot be used -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Bad:
    """Arguments of ``clean`` without --out, and words that the error must have."""

    arguments: list[str | Path]
    says: tuple[str, ...]


def npz(root: Path, name: str = "bad.npz", **arrays: object) -> Path:
    path = root / name
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


def text(root: Path, content: str, name: str = "bad.csv") -> Path:
    path = root / name
    path.write_text(content, encoding="utf-8")
    return path


def images(root: Path, **classes: int) -> Path:
    rng = np.random.default_rng(0)
    for name, n in classes.items():
        (root / "images" / name).mkdir(parents=True)
        for i in range(n):
            pixels = rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / "images" / name / f"{i}.png")
    return root / "images"


def broken_image(root: Path) -> Bad:
    folder = images(root, cat=4, dog=4)
    (folder / "dog" / "2.png").write_bytes(b"this is not an image")
    return Bad([folder], ("images", "dog/2.png"))


def truncated_image(root: Path) -> Bad:
    folder = images(root, cat=4, dog=4)
    whole = (folder / "cat" / "1.png").read_bytes()
    (folder / "cat" / "1.png").write_bytes(whole[: len(whole) // 2])
    return Bad([folder], ("images", "cat/1.png"))


def image_bomb(root: Path) -> Bad:
    """A few hundred bytes that say they are 40,000 by 40,000 pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    folder = images(root, cat=4, dog=4)
    header = struct.pack(">IIBBBBB", 40_000, 40_000, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000)))
    (folder / "cat" / "bomb.png").write_bytes(png + chunk(b"IEND", b""))
    return Bad([folder], ("images", "cat/bomb.png"))


def duplicate_ids(root: Path) -> Bad:
    ids = np.array(["a", "b", "c", "b"])
    return Bad([npz(root, x=np.eye(4), y=[0, 0, 1, 1], ids=ids)], ("bad.npz", "'b'", "more than once"))


class Harm:
    """What a pickle may do when it is loaded."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.trace),)


def object_array(root: Path) -> Bad:
    x = np.empty(4, dtype=object)
    x[:] = [Harm(root / "harm")] * 4
    return Bad([npz(root, x=x, y=[0, 0, 1, 1])], ("bad.npz", "'x'", "pickle"))


def plain_pickle(root: Path) -> Bad:
    path = root / "bad.npz"
    path.write_bytes(pickle.dumps(Harm(root / "harm")))
    return Bad([path], ("bad.npz", "not an .npz archive"))


def with_value(value: float) -> Callable[[Path], Bad]:
    def build(root: Path) -> Bad:
        x = np.eye(6)
        x[3, 2] = value
        return Bad([npz(root, x=x, y=[0, 0, 0, 1, 1, 1])], ("bad.npz", "sample 3, column 2", str(value)))

    return build


def with_cell(cell: str) -> Callable[[Path], Bad]:
    def build(root: Path) -> Bad:
        rows = [f"{i},{i * i % 7},{'ab'[i % 2]}" for i in range(40)]
        rows[5] = f"{cell},3,b"
        path = text(root, "\n".join(["width,height,kind", *rows]))
        return Bad([path, "--label", "kind"], ("bad.csv:7", "'width'", repr(cell)))

    return build


def text_for_a_dense_learner(root: Path) -> Bad:
    path = text(root, MAIL, "mail.tsv")
    return Bad(
        [path, "--label", "kind", "--text", "message", "--learner", "boosting"], ("'boosting'", "logistic")
    )


MAIL = "kind\tmessage\n" + "".join(
    f"{kind}\t{words} {words.split()[i % 5]} {'abcde'[i % 5] * 3}\n"
    for i in range(20)
    for kind, words in (("spam", "win cash prize now click"), ("ham", "see you at lunch tomorrow"))
)
TABLE = "width,height,kind\n1,2,a\n2,1,a\n3,5,b\n4,4,b\n"

BAD: dict[str, Callable[[Path], Bad]] = {
    "missing file": lambda root: Bad([root / "absent.npz"], ("absent.npz", "does not exist")),
    "empty name": lambda _: Bad([""], ("source", "empty")),
    "name with a null byte": lambda _: Bad(["a\0b"], ("a\\x00b", "does not exist")),
    "name that is too long": lambda _: Bad(["long" * 2000], ("long", "cannot be read")),
    "unknown form": lambda root: Bad([text(root, "hello", "bad.doc")], ("bad.doc", "does not read")),
    "folder without classes": lambda root: Bad(
        [images(root, cat=1).parent / "images" / "cat"], ("cat", "class folder")
    ),
    "unreadable image": broken_image,
    "truncated image": truncated_image,
    "image bomb": image_bomb,
    "damaged npz": lambda root: Bad([text(root, "PK", "bad.npz")], ("bad.npz", "damaged")),
    "one class, npz": lambda root: Bad(
        [npz(root, x=np.eye(4), y=[3, 3, 3, 3])], ("bad.npz", "one class", "'3'")
    ),
    "one class, folder": lambda root: Bad([images(root, cat=5)], ("images", "one class", "'cat'")),
    "one class, table": lambda root: Bad(
        [text(root, TABLE.replace("b", "a")), "--label", "kind"], ("bad.csv", "one class", "'a'")
    ),
    "an empty class, folder": lambda root: Bad([images(root, cat=4, dog=4, eel=0)], ("images", "'eel'")),
    "an empty class, npz": lambda root: Bad(
        [npz(root, x=np.eye(4), y=[0, 0, 1, 1], class_names=np.array(["a", "b", "eel"]))],
        ("bad.npz", "'eel'", "empty"),
    ),
    "nan, npz": with_value(float("nan")),
    "infinite, npz": with_value(float("-inf")),
    "nan, table": with_cell("nan"),
    "infinite, table": with_cell("inf"),
    "empty cell, table": with_cell(""),
    "label column absent": lambda root: Bad(
        [text(root, TABLE), "--label", "species"], ("bad.csv", "'species'", "'width', 'height', 'kind'")
    ),
    "label column not given": lambda root: Bad([text(root, TABLE)], ("bad.csv", "label", "'kind'")),
    "text column absent": lambda root: Bad(
        [text(root, TABLE), "--label", "kind", "--text", "prose"], ("bad.csv", "'prose'")
    ),
    "one column for two ends": lambda root: Bad(
        [text(root, TABLE), "--label", "kind", "--id", "kind"], ("'kind'", "label")
    ),
    "one sample of a class": lambda root: Bad(
        [npz(root, x=np.eye(5), y=[0, 0, 1, 1, 2])], ("bad.npz", "'2'", "at least 2")
    ),
    "one image of a class": lambda root: Bad([images(root, cat=4, dog=1)], ("images", "'dog'", "at least 2")),
    "no samples": lambda root: Bad(
        [npz(root, x=np.zeros((0, 3)), y=np.zeros(0, int))], ("bad.npz", "no samples")
    ),
    "duplicate ids, npz": duplicate_ids,
    "duplicate ids, table": lambda root: Bad(
        [text(root, "key," + TABLE.replace("\n", "\nk,", 4)), "--label", "kind", "--id", "key"],
        ("bad.csv", "'k'", "more than once"),
    ),
    "object array": object_array,
    "pickle": plain_pickle,
    "image size beyond reason": lambda root: Bad(
        [images(root, cat=4, dog=4), "--image-size", "100000"], ("image_size", "4096")
    ),
    "text for a learner of dense rows": text_for_a_dense_learner,
    "unknown learner": lambda _: Bad(
        ["digits", "--learner", "psychic"], ("'psychic'", "logistic", "compact", "module:callable")
    ),
    "settings of the other method": lambda _: Bad(
        ["digits", "--method", "groups", "--settings", "paper-cifar10"], ("'paper-cifar10'", "'ispl'")
    ),
    "effort of the other method": lambda _: Bad(
        ["digits", "--method", "ispl", "--effort", "quick"], ("'quick'", "'groups'")
    ),
}

MISUSE = {
    "unknown settings": (["--settings", "papers"], ("--settings", "'papers'", "'paper-gtsrb'")),
    "unknown method": (["--method", "magic"], ("--method", "'magic'", "ispl, groups")),
    "a method that was": (["--method", "expansion"], ("--method", "'expansion' was replaced by 'groups'")),
    "another that was": (["--method", "out-of-subset"], ("--method", "replaced by 'groups'")),
    "unknown effort": (["--effort", "much"], ("--effort", "'much'", "'thorough'")),
    "fail-above over 1": (["--fail-above", "1.5"], ("--fail-above", "1.5")),
    "fail-above under 0": (["--fail-above", "-0.1"], ("--fail-above", "-0.1")),
    "fail-above not a number": (["--fail-above", "nan"], ("--fail-above", "nan")),
    "fail-above no number": (["--fail-above", "all"], ("--fail-above", "'all'")),
    "seed under 0": (["--seed", "-1"], ("--seed", "-1")),
    "no workers": (["--workers", "0"], ("--workers", "0")),
    "unknown option": (["--truth", "x"], ("--truth",)),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_leaves_nothing(case: str, tmp_path: Path) -> None:
    bad = BAD[case](tmp_path)
    before = tree(tmp_path)
    out = tmp_path / "new" / "out"
    done = call("clean", *bad.arguments, "--out", out)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.endswith("\n")
    assert done.err.count("\n") == 1
    for word in bad.says:
        assert word in done.err
    assert tree(tmp_path) == before, "neither --out nor the folder above it, nor what a pickle would do"


@pytest.mark.parametrize(
    "case", ["missing file", "one class, npz", "image bomb", "settings of the other method"]
)
def test_bad_input_leaves_an_empty_folder_that_was_there(case: str, tmp_path: Path) -> None:
    bad = BAD[case](tmp_path)
    (tmp_path / "out").mkdir()
    assert call("clean", *bad.arguments, "--out", tmp_path / "out").code == 2
    assert list((tmp_path / "out").iterdir()) == []


def test_bad_input_in_a_real_process(tmp_path: Path) -> None:
    bad = image_bomb(tmp_path)
    before = tree(tmp_path)
    done = run("clean", *bad.arguments, "--out", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert all(word in done.err for word in bad.says)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_names_the_option_and_the_value(case: str, tmp_path: Path) -> None:
    options, says = MISUSE[case]
    done = call("clean", "digits", "--out", tmp_path / "out", *options)
    assert (done.code, done.out) == (2, "")
    *_, last = done.err.splitlines()
    assert last.startswith("Error: ")
    assert all(word in last for word in says)
    assert tree(tmp_path) == {}


# --- folders that cannot take the results ------------------------------------------------------------------


def test_a_folder_that_is_not_empty_is_refused_and_loses_nothing(tmp_path: Path) -> None:
    source, out = poisoned_npz(tmp_path), tmp_path / "out"
    (out / "clean").mkdir(parents=True)
    (out / "clean" / "thesis.tex").write_text("years of work")
    for extra in ([], ["--resume"]):
        done = call("clean", source, "--out", out, *extra)
        assert (done.code, done.out) == (2, "")
        assert done.err == f"error: {out}: is not empty; choose an empty or new folder with --out\n"
        assert tree(out) == {"clean": None, "clean/thesis.tex": b"years of work"}


@pytest.mark.parametrize("place", [".", "results", "results/deep"])
def test_a_folder_inside_the_source_is_refused(place: str, tmp_path: Path) -> None:
    folder, _ = write_form("folder", tmp_path, planted())
    before = tree(tmp_path)
    done = call("clean", folder, "--out", folder / place)
    assert (done.code, done.out) == (2, "")
    assert "source" in done.err
    assert tree(tmp_path) == before


def test_a_folder_around_the_source_is_refused(tmp_path: Path) -> None:
    source = poisoned_npz(tmp_path)
    done = call("clean", source, "--out", tmp_path)
    assert done.code == 2
    assert "contains the source" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["poisoned.npz"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    source = poisoned_npz(tmp_path)
    other = text(tmp_path, "mine", "out")
    done = call("clean", source, "--out", other)
    assert (done.code, done.err) == (2, f"error: {other}: is a file; choose a folder with --out\n")
    assert other.read_text() == "mine"


def test_a_name_that_no_folder_can_have(tmp_path: Path) -> None:
    done = call("clean", "digits", "--out", tmp_path / ("long" * 2000))
    assert (done.code, done.out) == (2, "")
    assert "cannot be used for the results" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("content", ["[1]", '"text"', "{", '{"data": 3}', '{"data": {}}', "\x00\xff"])
def test_a_foreign_run_json_is_not_taken_for_a_finished_run(content: str, tmp_path: Path) -> None:
    source, out = poisoned_npz(tmp_path), tmp_path / "out"
    out.mkdir()
    (out / "run.json").write_text(content, encoding="latin-1")
    before = tree(out)
    for extra in ([], ["--resume"]):
        done = call("clean", source, "--out", out, *extra)
        assert (done.code, done.out) == (2, "")
        assert str(out) in done.err
        assert done.err.count("\n") == 1
        assert tree(out) == before


# --- every form, end to end --------------------------------------------------------------------------------


def options_of(extra: list[str]) -> LoadOptions:
    given = dict(zip(extra[::2], extra[1::2], strict=True))
    return LoadOptions(label=given.get("--label"), id_column=given.get("--id"))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_end_to_end(form: str, tmp_path: Path) -> None:
    data = planted()
    source, extra = write_form(form, tmp_path, data)
    before, out = tree(tmp_path), tmp_path / "out"
    done = call("clean", source, "--out", out, *extra)
    assert (done.code, done.err) == (0, "")
    assert {path.name for path in out.iterdir()} == RESULTS
    assert call("verify", out).code == 0
    after = tree(tmp_path)
    assert {path: after[path] for path in before} == before, "the source is as it was"

    loaded = load(source, options=options_of(extra))
    rows = manifest_rows(out)
    assert [row["id"] for row in rows] == list(loaded.ids)
    assert [row["label"] for row in rows] == [loaded.class_names[label] for label in loaded.labels]
    planted_ids = {key for key, bad in zip(data.ids, data.truth, strict=True) if bad}
    assert {sample_key(row["id"]) for row in rows if row["keep"] == "false"} == planted_ids
    called = Counter(row["predicted"] for row in rows if row["keep"] == "false")
    assert called.most_common(1)[0][0] == "one", "their group is; a sample of it may be called another"

    kept = load(out / "clean" if form == "folder" else out / "clean" / source.name, options=options_of(extra))
    assert list(kept.ids) == [row["id"] for row in rows if row["keep"] == "true"]
    assert list(kept.sha256) == [row["sha256"] for row in rows if row["keep"] == "true"]
    assert kept.class_names == loaded.class_names == ("four", "one", "seven", "zero")


def sample_key(sample_id: str) -> str:
    """Image folders name samples by their path."""
    return Path(sample_id).stem


def test_digits_by_name(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = call("clean", "digits", "--out", out)
    assert (done.code, done.err) == (0, "")
    rows = manifest_rows(out)
    assert len(rows) == 1797
    assert rows[0]["id"] == "digits/0000"
    kept = load(out / "clean" / "digits.npz")
    assert len(kept) == sum(row["keep"] == "true" for row in rows) > 1700
    assert call("verify", out).code == 0


def test_linked_images_are_copied_when_asked(tmp_path: Path, quick: None) -> None:
    source, _ = write_form("folder", tmp_path, planted())
    one = sorted((source / "zero").iterdir())[0]
    for name, extra in (("linked", []), ("copied", ["--copy"])):
        assert call("clean", source, "--out", tmp_path / name, *extra).code == 0
        kept = tmp_path / name / "clean" / "zero" / one.name
        assert kept.read_bytes() == one.read_bytes()
        assert kept.samefile(one) is (name == "linked")


def test_image_size_is_obeyed(tmp_path: Path, quick: None) -> None:
    source, _ = write_form("folder", tmp_path, planted())
    done = call("clean", source, "--out", tmp_path / "out", "--image-size", "4", "--json")
    assert done.code == 0
    assert load(tmp_path / "out" / "clean").features.shape[1:] == (8, 8, 1), (
        "clean/ holds the files as they came"
    )


def test_text_columns(tmp_path: Path, quick: None) -> None:
    source, out = text(tmp_path, MAIL, "mail.tsv"), tmp_path / "out"
    done = call("clean", source, "--out", out, "--label", "kind", "--text", "message")
    assert (done.code, done.err) == (0, "")
    assert json.loads((out / "run.json").read_text())["data"]["kind"] == "text"
    assert call("verify", out).code == 0


# --- what is printed, and the exit code --------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A source with 12 planted samples of 240, and the folder of a finished run on it."""
    root = tmp_path_factory.mktemp("finished")
    source, out = poisoned_npz(root), root / "out"
    assert call("clean", source, "--out", out, "--seed", "5", "-q") == Outcome(0, "", "")
    return source, out


@pytest.mark.parametrize(("limit", "code"), [("0", 1), ("0.049", 1), ("0.05", 0), ("0.2", 0), ("1", 0)])
def test_fail_above(limit: str, code: int, finished: tuple[Path, Path]) -> None:
    """12 of 240 samples are removed: one twentieth is not more than one twentieth."""
    source, out = finished
    done = call("clean", source, "--out", out, "--seed", "5", "--resume", "--fail-above", limit)
    assert (done.code, done.err) == (code, "")
    assert done.out.startswith("12 of 240 samples (5.0%) look planted")


def test_fail_above_in_a_real_process(tmp_path: Path) -> None:
    source = poisoned_npz(tmp_path)
    done = run("clean", source, "--out", "results", "--fail-above", "0.01", cwd=tmp_path)
    assert (done.code, done.err) == (1, "")
    results = Path("results")
    assert done.out.splitlines() == [
        "12 of 240 samples (5.0%) look planted: all are labelled '7' and mostly called '1' by models that "
        "did not train on them, and share a pattern in the upper left corner.",
        f"  kept      228 of 240 samples in {results / 'clean'}",
        f"  manifest  {results / 'manifest.csv'}",
        f"  report    {results / 'report.html'}",
    ]
    assert (tmp_path / "results" / "run.json").is_file(), "findings are no reason to write less"


def test_json_is_the_record_and_nothing_else(finished: tuple[Path, Path]) -> None:
    source, out = finished
    for extra in ([], ["-q"], ["--no-progress"]):
        done = call("clean", source, "--out", out, "--seed", "5", "--resume", "--json", *extra)
        assert (done.code, done.err) == (0, "")
        record = json.loads(done.out)
        assert record == {**json.loads((out / "run.json").read_text()), "out": str(out)}
        assert record["result"]["n_removed"] == 12
    assert (
        call("clean", source, "--out", out, "--seed", "5", "--resume", "--json", "--fail-above", "0").code
        == 1
    )


@pytest.mark.parametrize("extra", [[], ["--no-progress"], ["-q"]])
def test_progress_is_drawn_on_stderr_only_and_only_if_wanted(
    extra: list[str], tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes anything for a terminal
    done = call("clean", poisoned_npz(tmp_path), "--out", tmp_path / "out", "--json", *extra)
    assert done.code == 0
    assert json.loads(done.out)["data"]["n"] == 240
    assert ("a model on everything" in done.err) is (extra == [])
    assert done.err == "" or extra == []


def test_quiet_prints_nothing(finished: tuple[Path, Path]) -> None:
    source, out = finished
    done = call("clean", source, "--out", out, "--seed", "5", "--resume", "-q", "--fail-above", "0")
    assert (done.code, done.out, done.err) == (1, "", "")


def test_quiet_still_tells_errors(tmp_path: Path) -> None:
    done = call("clean", "absent.csv", "--out", tmp_path / "out", "--quiet")
    assert done.code == 2
    assert "absent.csv" in done.err


@pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals")
def test_on_a_real_terminal(tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command("clean", poisoned_npz(tmp_path), "--out", tmp_path / "out"),
        env=environment(TERM="xterm", COLUMNS="100"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        screen = read_all(ours)
        assert process.stdout is not None
        printed = process.stdout.read().decode()
    os.close(ours)
    assert process.returncode == 0
    assert "a model on everything" in screen
    assert "8/8" in screen, "judges"
    assert printed.startswith("12 of 240 samples")
    assert "\x1b" not in printed


def read_all(descriptor: int) -> str:
    parts = []
    with contextlib.suppress(OSError):  # how Linux tells that the other end was closed
        while part := os.read(descriptor, 65_536):
            parts.append(part)
    return b"".join(parts).decode()


def test_a_learner_that_explains_little_is_reason_for_caution(tmp_path: Path, quick: None) -> None:
    rng = np.random.default_rng(0)
    source = npz(tmp_path, "noise.npz", x=rng.normal(size=(60, 4)), y=np.arange(60) % 4)
    done = call("clean", source, "--out", tmp_path / "out")
    assert done.code == 0
    assert done.out.splitlines()[1].startswith("Caution: The learner explains only ")


def test_what_was_found_of_our_own_comes_after_the_verdict(tmp_path: Path) -> None:
    source = poisoned_npz(tmp_path)
    notes = {"canaries": [{"label": 1, "size": 9, "found": 9}, {"label": 2, "size": 8, "found": 0}]}
    result = dataclasses.replace(decision(load(source), [0, 1], "7"), notes=notes)
    with mock.patch("unpoison.cleaning.sanitize", return_value=result):
        done = call("clean", source, "--out", tmp_path / "out")
        quiet = call("clean", source, "--out", tmp_path / "quiet", "-q")
    verdict, found, caution, *_ = done.out.splitlines()
    assert "look planted" in verdict
    assert found == "Of our own 9 and 8 planted samples, 9 and 0 were found."
    assert caution.startswith("Caution: Groups of about 8 samples, 13% of their class")
    assert quiet.out == ""


def test_the_command_is_recorded(tmp_path: Path, quick: None) -> None:
    source, out = poisoned_npz(tmp_path), tmp_path / "my results"
    assert call("clean", source, "--out", out, "-q").code == 0
    assert (
        json.loads((out / "run.json").read_text())["command"] == f"unpoison clean {source} --out '{out}' -q"
    )


# --- resuming ----------------------------------------------------------------------------------------------


def test_a_finished_run_is_reported_again_without_computing(
    finished: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = finished
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr("unpoison.cleaning.sanitize", forbidden)
    done = call("clean", source, "--out", out, "--seed", "5", "--resume")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("12 of 240 samples")
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


def test_a_finished_run_is_not_run_again(finished: tuple[Path, Path]) -> None:
    source, out = finished
    before = tree(out)
    done = call("clean", source, "--out", out, "--seed", "5")
    assert (done.code, done.out) == (2, "")
    assert "holds a finished run" in done.err
    assert tree(out) == before


OTHERS = [
    (["--seed", "6"], "seed"),
    (["--seed", "5", "--learner", "sgd"], "learner"),
    (["--seed", "5", "--settings", "authors-gtsrb"], "settings"),
    (["--seed", "5", "--method", "ispl"], "settings"),
]


@pytest.mark.parametrize(("other", "named"), OTHERS)
def test_a_finished_run_with_other_options_is_refused(
    other: list[str], named: str, finished: tuple[Path, Path]
) -> None:
    source, out = finished
    before = tree(out)
    done = call("clean", source, "--out", out, "--resume", *other)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {out} belongs to another run: {named} was ")
    assert done.err.count("\n") == 1
    assert tree(out) == before


def test_a_finished_run_on_other_data_is_refused(finished: tuple[Path, Path], tmp_path: Path) -> None:
    _, out = finished
    other = poisoned_npz(tmp_path, per_class=10)
    before = tree(out)
    done = call("clean", other, "--out", out, "--seed", "5", "--resume")
    assert done.code == 2
    assert "data was" in done.err
    assert tree(out) == before


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run with seed 5 that stopped with its results all but written."""
    root = tmp_path_factory.mktemp("stopped")
    source, out = poisoned_npz(root), root / "out"
    with mock.patch("unpoison.cleaning.write", side_effect=KeyboardInterrupt):
        assert call("clean", source, "--out", out, "--seed", "5").code == 130
    assert [path.name for path in out.iterdir()] == [WORK_FOLDER]
    return source, out


@pytest.fixture
def unfinished(stopped: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """A copy of it."""
    source, out = stopped
    shutil.copytree(out, tmp_path / "out")
    return source, tmp_path / "out"


@pytest.mark.parametrize(("other", "named"), OTHERS)
def test_an_unfinished_run_with_other_options_is_refused(
    other: list[str], named: str, unfinished: tuple[Path, Path]
) -> None:
    source, out = unfinished
    before = tree(out)
    done = call("clean", source, "--out", out, "--resume", *other)
    assert (done.code, done.out) == (2, "")
    assert f"belongs to another run: {named} was " in done.err
    assert done.err.count("\n") == 1
    assert tree(out) == before


def test_an_unfinished_run_needs_resume_and_then_ends_the_same(
    unfinished: tuple[Path, Path], finished: tuple[Path, Path]
) -> None:
    source, out = unfinished
    before = tree(out)
    done = call("clean", source, "--out", out, "--seed", "5")
    assert (done.code, done.out) == (2, "")
    assert "--resume" in done.err
    assert tree(out) == before
    assert call("clean", source, "--out", out, "--seed", "5", "--resume").code == 0
    assert {path.name for path in out.iterdir()} == RESULTS
    assert manifest_bytes(out) == manifest_bytes(finished[1])


def test_resume_of_nothing_is_a_first_run(tmp_path: Path, finished: tuple[Path, Path]) -> None:
    source, out = finished
    assert call("clean", source, "--out", tmp_path / "new", "--seed", "5", "--resume").code == 0
    assert manifest_bytes(tmp_path / "new") == manifest_bytes(out)


# --- the same result whatever the circumstances ------------------------------------------------------------


@pytest.mark.parametrize("method", ["groups", "ispl"])
def test_same_bytes_elsewhere_with_another_hash_seed(method: str, tmp_path: Path) -> None:
    source = poisoned_npz(tmp_path)
    options = ("--method", method, "--seed", "3")
    assert call("clean", source, "--out", tmp_path / "a", *options).code == 0
    (tmp_path / "elsewhere").mkdir()
    done = run(
        "clean", Path("..") / source.name, "--out", "b", *options,
        cwd=tmp_path / "elsewhere", PYTHONHASHSEED="123", OMP_NUM_THREADS="3", LC_ALL="C",
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    there = tmp_path / "elsewhere" / "b"
    assert manifest_bytes(there) == manifest_bytes(tmp_path / "a")
    assert tree(there / "clean") == tree(tmp_path / "a" / "clean")


def test_another_seed_is_another_run(finished: tuple[Path, Path], tmp_path: Path) -> None:
    source, out = finished
    assert call("clean", source, "--out", tmp_path / "other", "--seed", "6").code == 0
    assert manifest_bytes(tmp_path / "other") != manifest_bytes(out)
