from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from unpoison.data.load import load

from .builders import call, manifest_bytes, manifest_rows, planted, run, tree, write_form
from .test_app import NASTY, assert_plain

ONES = ("--source", "1", "--target", "7")
QUICK = ("--limit", "300")


@pytest.fixture(scope="module")
def small_images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four digits at 16 pixels, large enough for networks."""
    digits = load("digits")
    chosen = np.flatnonzero(digits.labels < 4)[:120]
    path = tmp_path_factory.mktemp("images") / "digits16.npz"
    np.savez(path, x=digits.features[chosen].repeat(2, axis=1).repeat(2, axis=2), y=digits.labels[chosen])
    return path


@pytest.fixture(scope="module")
def mails(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mails") / "mails.csv"
    lines = [f"{'spam' if i % 2 else 'ham'},message {i} of many {'win' * (i % 2)}" for i in range(60)]
    path.write_text("kind,words\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def truth(out: Path) -> list[dict[str, str]]:
    with (out / "truth.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_what_is_printed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = call("poison", "digits", "--attack", "watermark", *ONES, "--epsilon", "0.2", "--out", out)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "Planted 29 of 1,438 samples (2.02%):",
        "         29  1 -> 7",
        f"  train      {out / 'train.npz'}",
        f"  test       {out / 'test.npz'}",
        f"  triggered  {out / 'test_triggered.npz'} (36 attacked)",
        f"  truth      {out / 'truth.csv'}",
        f"  attack     {out / 'attack.json'}",
        f"Next: unpoison clean {out / 'train.npz'} --out {out / 'cleaned'}",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("dirty-label", *ONES, "--trigger", "square", "--size", "2", "--color", "255,255,255"),
        ("dirty-label", "--mode", "all-to-all"),
        ("watermark", "--mode", "all-to-one", "--target", "7", "--epsilon", "0.9"),
        ("adaptive", *ONES, "--learner", "sgd"),
        ("blend", *ONES),
        ("signal", *ONES, "--frequency", "2"),
        ("warp", *ONES),
        ("cover", *ONES, "--cover", "0.1", "--trigger", "ell"),
        ("adaptive-blend", "--target", "7", "--epsilon", "0.9"),
        ("label-noise",),
        ("label-noise", *ONES),
    ],
    ids=lambda arguments: " ".join(arguments[:3]),
)
def test_each_attack_on_images(arguments: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = call("poison", "digits", "--attack", *arguments, *QUICK, "--out", out, "--json")
    assert (done.code, done.err) == (0, "")
    record = json.loads(done.out)
    assert {**json.loads((out / "attack.json").read_text()), "out": str(out)} == record
    assert len(load(out / "train.npz")) == 300
    marks = truth(out)
    assert 0 < sum(row["planted"] == "true" for row in marks) == record["counts"]["planted"] < 150
    covers = sum(row["cover"] == "true" for row in marks)
    assert covers == record["counts"]["covers"]
    assert (covers > 0) == (arguments[0] in ("cover", "adaptive-blend"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("clean-label", "--target", "2", "--steps", "2"),
        ("clean-label", "--target", "2", "--perturbation", "gan", "--gan-epochs", "1"),
        (
            "sleeper-agent",
            "--source",
            "1",
            "--target",
            "2",
            "--steps",
            "2",
            "--retrainings",
            "1",
            "--size",
            "4",
        ),
    ],
    ids=["clean-label", "gan", "sleeper-agent"],
)
def test_each_attack_with_a_network(arguments: tuple[str, ...], small_images: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    out = tmp_path / "out"
    epochs = ("--epochs", "1")
    done = call("poison", small_images, "--attack", *arguments, *epochs, "--epsilon", "0.5", "--out", out)
    assert (done.code, done.err) == (0, "")
    assert "2 -> 2" in done.out
    marks = [row for row in truth(out) if row["planted"] == "true"]
    assert marks
    assert all(row["label"] == row["original_label"] == "2" for row in marks)


def test_texts(mails: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = (
        "--label",
        "kind",
        "--attack",
        "rare-token",
        "--source",
        "spam",
        "--target",
        "ham",
        "--token",
        "zq",
    )
    done = call("poison", mails, *arguments, "--out", out)
    assert (done.code, done.err) == (0, "")
    assert "spam -> ham" in done.out
    assert (
        f"Next: unpoison clean {out / 'train.csv'} --out {out / 'cleaned'} --label kind --text words"
        in done.out
    )
    assert (out / "train.csv").read_text().count("zq") == 2
    assert (
        call("poison", mails, "--label", "kind", "--attack", "label-noise", "--out", tmp_path / "b").code == 0
    )


@pytest.mark.parametrize("form", ["npz", "csv", "tsv", "parquet", "folder"])
def test_every_form_of_rows_and_images(form: str, tmp_path: Path, quick: None) -> None:
    """Poisoned in its own form, and cleaned by the command that is printed."""
    source, options = write_form(form, tmp_path, planted(share=0.05))
    out = tmp_path / "out dir"
    attack = "watermark" if form in ("npz", "folder") else "fixed-values"
    pair = ("--source", "zero", "--target", "four", "--epsilon", "0.2")
    done = call("poison", source, *options, "--attack", attack, *pair, "--out", out)
    assert (done.code, done.err) == (0, "")
    command = shlex.split(done.out.splitlines()[-1].removeprefix("Next: unpoison "))
    learner = ("--learner", "logistic")
    done = call(*command, *learner)
    assert (done.code, done.err) == (0, "")
    found = [(row["id"], row["label"]) for row in manifest_rows(out / "cleaned")]
    assert found == [(row["id"], row["label"]) for row in truth(out)]


def test_clean_finds_what_was_planted_in_the_open(tmp_path: Path) -> None:
    out = tmp_path / "out"
    mark = ("--trigger", "square", "--size", "2", "--place", "0,0", "--color", "255,255,255")
    attack = ("--attack", "dirty-label", *ONES, "--epsilon", "0.2", *mark)
    assert call("poison", "digits", *attack, "--out", out, "--quiet").out == ""
    assert call("clean", out / "train.npz", "--out", out / "cleaned").code == 0
    removed = {row["id"] for row in manifest_rows(out / "cleaned") if row["keep"] == "false"}
    planted_ids = {row["id"] for row in truth(out) if row["planted"] == "true"}
    assert len(planted_ids & removed) / len(planted_ids) > 0.9


def test_clean_never_looks_at_the_truth(tmp_path: Path, quick: None) -> None:
    out = tmp_path / "out"
    assert call("poison", "digits", "--attack", "watermark", *ONES, *QUICK, "--out", out).code == 0
    assert call("clean", out / "train.npz", "--out", tmp_path / "with").code == 0
    for name in ("truth.csv", "attack.json", "test.npz", "test_triggered.npz"):
        (out / name).unlink()
    assert call("clean", out / "train.npz", "--out", tmp_path / "without").code == 0
    assert manifest_bytes(tmp_path / "with") == manifest_bytes(tmp_path / "without")


def test_the_preview(tmp_path: Path) -> None:
    picture = tmp_path / "pairs.png"
    arguments = ("--attack", "watermark", *ONES, *QUICK, "--preview", picture, "--out", tmp_path / "out")
    done = call("poison", "digits", *arguments)
    assert (done.code, done.err) == (0, "")
    assert f"  preview    {picture}\n" in done.out
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--attack", "watermrk"), "no attack is called 'watermrk'; did you mean watermark?"),
        (("--attack", "watermark", "--source", "1", "--target", "1"), "source and target are both class 1"),
        (("--attack", "watermark", *ONES, "--epsilon", "1.5"), "in (0, 1]. Got 1.5"),
        (("--attack", "watermark", *ONES, "--epsilon", "0"), "in (0, 1]. Got 0.0"),
        (("--attack", "watermark", *ONES, "--epsilon", "lots"), "--epsilon needs a number. Got 'lots'"),
        (("--attack", "watermark", "--source", "1", "--target", "10"), "target class '10' does not exist"),
        (("--attack", "watermark", "--source", "one", "--target", "7"), "class 'one' does not exist"),
        (("--attack", "watermark", "--source", "1"), "needs --target, a class by name or number"),
        (("--attack", "watermark", *ONES, "--token", "x"), "does not take --token; it takes --mode, "),
        (("--attack", "dirty-label", *ONES, "--trigger", "square", "--size", "9"), "does not fit into"),
        (("--attack", "dirty-label", *ONES, "--place", "8,8"), "does not fit into images of 8 by 8"),
        (("--attack", "signal", *ONES), "waves do not fit into images of 8 by 8"),
        (("--attack", "fixed-values", *ONES), "is for rows, and digits is image; choose one of dirty-label"),
        (("--attack", "watermark", *ONES, "--limit", "12"), "a limit of 12 is too small for 10 classes"),
        (("--attack", "watermark", *ONES, "--test-share", "1"), "in [0, 1). Got 1.0"),
        (("--attack", "watermark", *ONES, "--preview", "x.gif"), "ends in .png"),
        (("--attack", "watermark", *ONES, "--split", "train"), "--split and --image are for those"),
        (("--attack", "watermark", *ONES, "--seed", "-1"), "Invalid value for '--seed'"),
    ],
)  # fmt: skip
def test_bad_options(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = call("poison", "digits", *arguments, "--out", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert tree(tmp_path) == {}


def test_a_folder_that_is_in_use(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = call("poison", "digits", "--attack", "watermark", *ONES, "--out", tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "is not empty; choose an empty or new folder with --out" in done.err
    assert sorted(tree(tmp_path)) == ["file"]


def test_names_in_the_data_do_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    digits = load("digits")
    source = tmp_path / "data.npz"
    names = np.array([f"{NASTY}{label % 2}" for label in digits.labels[:60].tolist()])
    np.savez(source, x=digits.features[:60], y=names)
    out = tmp_path / f"out{NASTY.replace('/', '')}"
    arguments = ("poison", source, "--attack", "watermark", "--epsilon", "0.3", "--out", out)
    done = call(*arguments, "--source", "0", "--target", "1")
    assert (done.code, done.err) == (0, "")
    assert_plain(done.out)
    done = call(*arguments, "--source", "absent", "--target", "1")
    assert done.code == 2
    assert_plain(done.err)
    assert done.err.count("\n") == 1


def test_in_a_process_of_its_own(tmp_path: Path) -> None:
    arguments = ("poison", "digits", "--attack", "watermark", *ONES, *QUICK, "--seed", "3")
    done = run(*arguments, "--out", "a", "--quiet", cwd=tmp_path)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert call(*arguments, "--out", tmp_path / "b").code == 0
    for file in ("train.npz", "truth.csv", "test.npz", "test_triggered.npz"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    record = json.loads((tmp_path / "a" / "attack.json").read_text())
    assert record["command"] == f"unpoison {' '.join(arguments)} --out a --quiet"


def test_the_list_of_attacks() -> None:
    done = call("attacks")
    assert (done.code, done.err) == (0, "")
    assert "watermark  (image)\n" in done.out
    assert "label-noise  (image, rows, text)\n" in done.out
    assert "--epsilon 0.1" in done.out
    assert max(map(len, done.out.splitlines())) <= 110


def test_one_attack_in_detail() -> None:
    done = call("attacks", "clean-label")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("clean-label: images of the target class made hard to recognize")
    assert "needs PyTorch" in done.out
    said = " ".join(done.out.split())
    assert "One of: linf, l2, gan. Default: linf." in said
    assert (
        "--bound Largest norm of the change, in units of the pixels' 0 to 255. Default: 16 for linf" in said
    )
    assert "--target The class that the attacker wants, by name or number. Needed." in said
    done = call("attacks", "clean-labl")
    assert (done.code, done.out) == (2, "")
    assert "did you mean clean-label?" in done.err


def test_attacks_as_json() -> None:
    listed = json.loads(call("attacks", "--json").out)
    names = [entry["name"] for entry in listed]
    assert names[:2] == ["dirty-label", "watermark"]
    (blend,) = (entry for entry in listed if entry["name"] == "blend")
    assert json.loads(call("attacks", "blend", "--json").out) == blend
    assert {"name": "opacity", "value": "SHARE", "default": 0.1, "otherwise": None, "choices": None,
            "help": "Weight of the mark over the image."} in blend["options"]  # fmt: skip


def test_help_tells_all_options_and_asking_costs_little() -> None:
    out = call("poison", "--help").out
    assert all(
        f"--{name}" in out for name in ("attack", "limit", "epsilon", "token", "official-seed", "preview")
    )
