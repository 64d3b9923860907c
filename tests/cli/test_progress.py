from __future__ import annotations

import contextlib
import io

import pytest

from unpoison.cli.progress import progress_bars
from unpoison.events import Progress, ignore


def test_disabled_is_silent() -> None:
    with contextlib.redirect_stderr(io.StringIO()) as err, progress_bars(enabled=False) as listener:
        assert listener is ignore
    assert err.getvalue() == ""


def test_silent_where_stderr_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    with contextlib.redirect_stderr(io.StringIO()) as err, progress_bars(enabled=True) as listener:
        assert listener is ignore
    assert err.getvalue() == ""


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> str:
    """What two stages look like on a terminal, the second of them resumed."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        progress_bars(enabled=True) as tell,
    ):
        for done in range(4):
            tell(Progress("reading", done, 3))
        tell(Progress("judges", 5, 8, resumed=5))
        tell(Progress("judges", 8, 8, resumed=5))
    assert out.getvalue() == ""
    return err.getvalue()


def test_a_bar_for_each_stage_with_the_time_left(drawn: str) -> None:
    assert "reading" in drawn
    assert "3/3" in drawn
    assert "8/8" in drawn
    assert "left" in drawn


def test_tells_what_came_from_before(drawn: str) -> None:
    assert "judges (5 from before)" in drawn
    assert "reading (" not in drawn


def test_a_failure_under_way_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None:
        with contextlib.redirect_stderr(io.StringIO()), progress_bars(enabled=True) as tell:
            tell(Progress("work", 1, 2))
            raise RuntimeError("halfway")

    monkeypatch.setenv("FORCE_COLOR", "1")
    with pytest.raises(RuntimeError, match="halfway"):
        work()


def test_bytes_from_before_are_told_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with (
        contextlib.redirect_stderr(io.StringIO()) as err,
        progress_bars(enabled=True, in_bytes=True) as tell,
    ):
        tell(Progress("download", 2_000_000, 4_000_000, resumed=1_500_000))
        tell(Progress("download", 4_000_000, 4_000_000, resumed=1_500_000))
    assert "download (1.5 MB from before)" in err.getvalue()
    assert "4.0/4.0 MB" in err.getvalue()
