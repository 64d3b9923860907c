"""The documentation: the tutorial runs as printed, examples run, commands exist, pages need no network."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

import unpoison
from cli.builders import environment, manifest_rows
from test_examples import shell
from unpoison.cli.app import app
from unpoison.data.load import load

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
HOW_TOS = sorted((DOCS / "how-to").glob("*.md"))
NEEDS = {"network.md": "torch", "cluster.md": "ray", "rows.md": "pandas"}

on_bash = pytest.mark.skipif(os.name == "nt", reason="the commands are for bash")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and content of the code blocks of a page, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def python_of(page: Path) -> list[str]:
    return [content for language, content in blocks(page) if language == "python"]


RUNNING = [
    pytest.param(page, marks=[pytest.mark.slow] if page.name == "cluster.md" else [])
    for page in HOW_TOS
    if python_of(page)
]


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """An empty folder, with ``python`` and ``unpoison`` on the path of :func:`shell`."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, arguments in (("python", ""), ("unpoison", "-m unpoison ")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
        (programs / name).chmod(0o755)
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def without_figures(text: str) -> str:
    """On another machine another sample may be lost; the words stay."""
    return " ".join(re.sub(r"\d[\d,.]*%?", "0", text).split())


@on_bash
@pytest.mark.slow
def test_the_tutorial_as_printed(empty: Path) -> None:
    said, everything = "", ""
    for language, content in blocks(DOCS / "tutorial.md"):
        if language == "python":
            (name,) = re.findall(r"\A# (\w+\.py)\n", content)
            (empty / name).write_text(content, encoding="utf-8")
        elif language == "sh":
            done = shell(content, empty)
            assert (done.returncode, done.stderr) == (0, ""), content
            said = done.stdout
            everything += said
        else:
            assert without_figures(content) in without_figures(said)
    decided = [row["id"] for row in manifest_rows(empty / "cleaned") if row["decided_by"] == "review"]
    assert decided == ["7/1552.png"]
    before, after = map(float, re.findall(r"turns ([\d.]+)% of the ones", everything))
    assert before > 80
    assert after < 20
    found, planted, others = map(int, re.findall(r"(\d+) of (\d+) planted.*, (\d+) others", everything)[0])
    assert found >= 0.9 * planted
    assert others <= 5


@pytest.mark.parametrize("page", RUNNING, ids=lambda page: page.stem)
def test_the_python_of_a_how_to(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name])
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for content in python_of(page):
        exec(compile(content, str(page), "exec"), names)
    for written in tmp_path.iterdir():
        assert len(load(written)) == 1797  # the arrays of "Your own data"


def test_the_network_of_the_how_to_fits_any_image() -> None:
    torch = pytest.importorskip("torch")
    names: dict[str, object] = {}
    exec(compile(python_of(DOCS / "how-to" / "network.md")[0], "network.md", "exec"), names)
    module = names["network"]((3, 17, 16), 4)  # type: ignore[operator]
    assert module(torch.zeros(2, 3, 17, 16)).shape == (2, 4)


def commands() -> Iterator[tuple[str, str]]:
    """Every command of the pages: in blocks for the shell, and in tables and sentences of the how-tos."""
    for page in sorted(DOCS.rglob("*.md")):
        scripts = [content for language, content in blocks(page) if language == "sh"]
        lines = "\n".join(scripts).replace("\\\n", " ").splitlines()
        if page in HOW_TOS:
            lines += re.findall(r"`(unpoison [^`]*\s--?[^`]*)`", page.read_text(encoding="utf-8"))
        yield from ((page.name, line) for line in lines if line.startswith("unpoison "))


def parse(line: str) -> click.Context:
    """As the program does, up to where it would begin to work."""
    name, *arguments = shlex.split(line, comments=True)
    command: click.Command = app
    context = click.Context(app, info_name=name, **app.context_settings)
    while isinstance(command, click.Group):
        name = arguments.pop(0)
        command = command.commands[name]
        # below its parents, as in the program: a command keeps the names of the help option it first meets
        if isinstance(command, click.Group):
            context = click.Context(command, parent=context, info_name=name, **command.context_settings)
    return command.make_context(name, arguments, parent=context)


@pytest.mark.parametrize(("page", "line"), sorted(set(commands())))
def test_every_command_has_these_options(page: str, line: str) -> None:
    if "bench run --runner ray" in line and "--out" not in line:
        line += " --out results"  # named in passing
    parse(line)


def test_a_command_that_does_not_exist_is_noticed() -> None:
    with pytest.raises(click.NoSuchOption):
        parse("unpoison clean photos --out cleaned --fail-over 0.1")
    with pytest.raises(KeyError):
        parse("unpoison cleanse photos")
    assert len(list(commands())) > 20


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("mkdocs") is None or find_spec("mkdocstrings") is None:
        pytest.skip("MkDocs is not installed")
    target = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", target)
    assert done.returncode == 0, done.stderr
    return target


def build(settings: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """As ``make docs`` does. Not ``--quiet``: warnings that are not shown are not counted either."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(settings), "-d", str(target)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_broken_link_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[nowhere](missing.md)\n")
    settings = tmp_path / "mkdocs.yml"
    settings.write_text("site_name: broken\n")
    done = build(settings, tmp_path / "site")
    assert done.returncode != 0
    assert "missing.md" in done.stderr


class Loaded(HTMLParser):
    """Collects what a browser fetches to show a page; links that a person may follow are not among it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        names = ("src", "srcset", "data", "poster", *(("href",) if tag == "link" else ()))
        if given.get("rel") != "canonical":
            self.addresses += [value for name in names if (value := given.get(name))]


def is_elsewhere(address: str) -> bool:
    return re.match(r"\s*(?:[a-z][a-z0-9+.-]*:)?//", address, re.IGNORECASE) is not None


def test_the_pages_need_no_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        loaded = Loaded(page.read_text(encoding="utf-8")).addresses
        assert any(address.endswith(".css") for address in loaded)
        assert [address for address in loaded if is_elsewhere(address)] == [], page.name
    for sheet in site.rglob("*.css"):
        used = re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")\s]+)", sheet.read_text(encoding="utf-8"))
        assert [address for address in used if is_elsewhere(address)] == [], sheet.name


def test_what_needs_the_network_is_noticed() -> None:
    page = '<link href="//fonts.example/a.css"><script src="https://cdn.example/b.js"></script><a href="https://c">'
    assert [is_elsewhere(address) for address in Loaded(page).addresses] == [True, True]
    assert not is_elsewhere("../css/theme.css")


def test_the_reference_has_the_public_names_and_every_command(site: Path) -> None:
    page = (site / "reference" / "python.html").read_text(encoding="utf-8")
    for name in set(unpoison.__all__) - {"__version__"}:
        assert f'id="unpoison.{name}"' in page
    adapters = {path.stem for path in (ROOT / "src/unpoison/adapters").glob("*.py")} - {"__init__", "judging"}
    for name in adapters:
        assert f'id="unpoison.adapters.{name}"' in page
    help_page = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    for name, command in app.commands.items():
        assert f">unpoison {name}</h2>" in help_page
        for option in (
            option for parameter in command.params for option in parameter.opts if option[0] == "-"
        ):
            assert option in help_page


def test_names_in_docstrings_are_plain(site: Path) -> None:
    for page in (site / "reference").glob("*.html"):
        assert not re.search(r":(class|meth|data|mod|func):", page.read_text(encoding="utf-8"))
