"""What MkDocs does here besides: the help of the commands, links to examples/, names in docstrings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File, Files

from unpoison.cli.app import app

EXAMPLES = "examples"
HELP_GOES_HERE = "<!-- help of every command -->"
HELP_WIDTH = 90
ROLE = re.compile(r":(?:class|data|func|meth|mod):<code>~?")


def on_files(files: Files, config: Any) -> Files:
    """Copy the files that pages link to from outside the folder into the site."""
    for path in sorted((Path(config.config_file_path).parent / EXAMPLES).iterdir()):
        files.append(File.generated(config, f"{EXAMPLES}/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put in the help, and name the examples as they are called from the site's root."""
    if HELP_GOES_HERE in markdown:
        markdown = markdown.replace(HELP_GOES_HERE, "\n".join(help_pages(app, "unpoison")))
    return markdown.replace(f"](../{EXAMPLES}/", f"]({EXAMPLES}/")


def on_page_content(html: str, **_: Any) -> str:
    """Docstrings mark names in Sphinx's way; a name is enough."""
    return ROLE.sub("<code>", html)


def help_pages(command: click.Command, name: str, *, above: click.Context | None = None) -> Iterator[str]:
    """A heading and click's own help for a command and all below it."""
    settings = {**command.context_settings, "max_content_width": HELP_WIDTH, "terminal_width": HELP_WIDTH}
    context = click.Context(command, parent=above, info_name=name, **settings)
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    for below, inner in getattr(command, "commands", {}).items():
        yield from help_pages(inner, below, above=context)
