"""A real browser, and pages that refuse to say anything on the console or to ask the network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_browser(playwright: Any) -> str | None:
    """One on the path, or the one that ``playwright install chromium`` brought."""
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    own: str = playwright.chromium.executable_path
    return own if Path(own).is_file() else None


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        path = find_browser(playwright)
        if path is None:
            pytest.skip("no browser found: install chromium, or run python -m playwright install chromium")
        launched = playwright.chromium.launch(executable_path=path, headless=True, args=FLAGS)
        yield launched
        launched.close()


class Opener:
    """Opens reports from disk, and keeps what they said and asked for."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._contexts: list[Any] = []
        self.said: list[str] = []
        self.asked: list[str] = []

    def context(self, **options: Any) -> Any:
        """A browser without any history."""
        context = self._browser.new_context(**options)
        context.set_default_timeout(20_000)
        context.on("request", lambda request: self.asked.append(request.url))
        self._contexts.append(context)
        return context

    def open(self, report: Path, *, context: Any = None, **options: Any) -> Any:
        """The report in ``context``, or in a new one with those options."""
        page = (context or self.context(**options)).new_page()
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        page.goto(report.absolute().as_uri())
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def opener(browser: Any) -> Iterator[Opener]:
    opener = Opener(browser)
    yield opener
    opener.close()
    assert opener.said == [], "the console stays empty"
    assert {url.split(":")[0] for url in opener.asked} <= {"file", "data", "blob"}, "nothing asks the network"
    assert sum(url.startswith("file:") for url in opener.asked) >= 1
