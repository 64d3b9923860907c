"""The core's tests pass where only numpy and scikit-learn are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src"


def minimal_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(TESTS), str(SOURCE), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=TESTS.parent,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_packages_really_are_absent() -> None:
    code = (
        "import minimal_install\n"
        "for name in sorted(minimal_install.ABSENT):\n"
        "    for wanted in (name, name + '.something'):\n"
        "        try:\n"
        "            __import__(wanted)\n"
        "        except ModuleNotFoundError as error:\n"
        "            assert 'minimal install' in str(error)\n"
        "        else:\n"
        "            raise SystemExit(wanted + ' was imported')\n"
        "import numpy, sklearn\n"
    )
    done = minimal_python("-c", code)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_test_that_needs_more_fails_under_the_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_needs_click.py").write_text("def test_it():\n    import click\n")
    options = ("-p", "no:cacheprovider", "-q", "--rootdir", str(tmp_path), str(tmp_path))
    assert minimal_python("-m", "pytest", *options).returncode == 0
    done = minimal_python("-m", "pytest", "-p", "minimal_install", *options)
    assert done.returncode == 1
    assert "No module named 'click' (minimal install)" in done.stdout


@pytest.mark.slow
def test_the_tests_of_the_core_pass() -> None:
    options = ("-p", "minimal_install", "-p", "no:cacheprovider", "-q", "-m", "not slow")
    done = minimal_python("-m", "pytest", *options, str(TESTS / "core"))
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert " skipped" not in done.stdout
