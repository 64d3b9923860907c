from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from unpoison import __version__

from .builders import call, command, environment, poisoned_npz, run, tree, write_form
from .builders import planted as planted_digits

NASTY = 'a\x1b[31m\x1b]0;title\x07\r\x08<b>&"{{7*7}}[bold]\u202egnp.exe\x9b2J'
"""Colours, a window title, a bell, a rewritten line, HTML, templates, markup, text that runs backwards."""


def assert_plain(text: str) -> None:
    """Nothing but printable characters and line ends."""
    assert all(line.isprintable() for line in text.split("\n")), ascii(text)


def test_version() -> None:
    done = run("--version")
    assert (done.code, done.out, done.err) == (0, f"unpoison, version {__version__}\n", "")


@pytest.mark.parametrize(
    "arguments", [("--help",), ("-h",), ("clean", "--help"), ("demo", "-h"), ("verify", "-h")]
)
def test_help_goes_to_stdout(arguments: tuple[str, ...]) -> None:
    done = call(*arguments)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: unpoison")


def test_help_of_the_program_names_the_commands_and_exit_codes() -> None:
    out = call("--help").out
    assert all(
        name in out for name in ("clean", "demo", "verify", "Exit codes: 0", "1 findings", "2 a usage")
    )


@pytest.mark.parametrize(
    "arguments", [(), ("nonsense",), ("--nonsense",), ("clean",), ("verify",), ("clean", "digits")]
)
def test_wrong_usage_is_exit_code_2_with_the_help_on_stderr(arguments: tuple[str, ...]) -> None:
    done = call(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Usage: unpoison" in done.err


def test_an_error_raised_on_purpose_is_one_line_in_a_real_process(tmp_path: Path) -> None:
    done = run("clean", "absent.npz", "--out", "results", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: absent.npz does not exist; give ")
    assert done.err.count("\n") == 1
    assert tree(tmp_path) == {}


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("unpoison.cleaning.clean", broken)
    done = call("clean", "digits", "--out", tmp_path / "out")
    assert (done.code, done.out) == (3, ""), "1 would say that something was found"
    assert done.err.startswith("Traceback")
    assert done.err.endswith("RuntimeError: a bug\n")


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_interrupted_is_not_exit_code_1_and_can_be_resumed(tmp_path: Path) -> None:
    """Exit code 1 says that something was found, which someone who pressed Ctrl-C did not hear."""
    source, out = poisoned_npz(tmp_path), tmp_path / "out"
    arguments = ("clean", source, "--out", out, "--learner", "forest")
    with subprocess.Popen(
        command(*arguments),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a job in a shell's background ignores Ctrl-C, and so would all that it starts, these tests included
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        rounds = out / ".unpoison-work" / "rounds"
        while not list(rounds.glob("model-*.npz")):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate()
    assert (process.returncode, printed) == (130, "")
    assert said.strip() == "interrupted; clean goes on from its last finished step with --resume"
    assert rounds.is_dir()
    assert not (out / "run.json").exists()


def test_names_in_errors_do_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    path = tmp_path / f"{NASTY.replace('/', '')}.npz"
    np.savez(path, x=np.zeros((4, 3)), y=np.zeros(4, dtype=int))
    for arguments in (
        ("clean", path, "--out", tmp_path / "out"),
        ("clean", f"{path}.absent", "--out", tmp_path / "out"),
        ("clean", "digits", "--out", path),
        ("verify", path),
        ("demo", "--out", path),
    ):
        done = call(*arguments)
        assert (done.code, done.out) == (2, "")
        assert_plain(done.err)
        assert done.err.count("\n") == 1
        assert "\\x1b[31m" in done.err


@pytest.mark.parametrize("field", ["class", "id"])
def test_names_in_the_data_do_not_reach_the_terminal_raw(field: str, tmp_path: Path, quick: None) -> None:
    data = planted_digits()
    names = np.array([NASTY + name if field == "class" else name for name in data.names])
    ids = np.array([NASTY + i if field == "id" else i for i in data.ids])
    source = tmp_path / "data.npz"
    np.savez(source, x=data.images, y=names, ids=ids)
    out = tmp_path / f"out{NASTY.replace('/', '')}"
    done = call("clean", source, "--out", out)
    assert (done.code, done.err) == (0, "")
    assert_plain(done.out)
    as_json = call("clean", source, "--out", out, "--resume", "--json")
    assert as_json.out.isascii()
    assert_plain(as_json.out)
    assert json.loads(as_json.out)["out"] == str(out)
    assert call("verify", out).code == 0
    (out / "clean" / "data.npz").write_bytes(b"damaged")
    done = call("verify", out)
    assert done.code == 1
    assert_plain(done.out)


def test_file_names_in_an_image_folder_do_not_reach_the_terminal_raw(tmp_path: Path, quick: None) -> None:
    root, _ = write_form("folder", tmp_path, planted_digits())
    (root / "one").rename(root / f"{NASTY.replace('/', '')}one")
    bad = root / "four" / f"{NASTY.replace('/', '')}.png"
    bad.write_bytes(b"no image")
    done = call("clean", root, "--out", tmp_path / "out")
    assert (done.code, done.out) == (2, "")
    assert_plain(done.err)
    assert done.err.count("\n") == 1
    bad.unlink()
    done = call("clean", root, "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    assert_plain(done.out)
    next((tmp_path / "out" / "clean").glob("*one/*")).unlink()
    done = call("verify", tmp_path / "out")
    assert done.code == 1
    assert_plain(done.out)
