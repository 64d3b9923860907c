"""``unpoison attacks``: what ``unpoison poison`` can do."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from unpoison.evaluation.attack_list import Entry

WIDTH = 110


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def attacks(name: str | None, as_json: bool) -> None:
    """List the attacks for unpoison poison with their options, or tell all about the attack NAME."""
    from unpoison.evaluation.attack_list import ATTACKS, find

    chosen = list(ATTACKS.values()) if name is None else [find(name)]
    if as_json:
        facts = [_facts(entry) for entry in chosen]
        click.echo(json.dumps(facts if name is None else facts[0], indent=2))
    elif name is None:
        for entry in chosen:
            _summary(entry)
        click.echo("unpoison attacks NAME explains the options; docs/attacks.md has examples.")
    else:
        _details(chosen[0])


def _summary(entry: Entry) -> None:
    click.echo(f"{entry.name}  ({', '.join(entry.kinds)})")
    click.echo(f"    {entry.summary}")
    options = "  ".join(f"--{option.name} {_default(option)}" for option in entry.options)
    for line in textwrap.wrap(options, WIDTH - 4, break_on_hyphens=False):
        click.echo(f"    {line}")


def _details(entry: Entry) -> None:
    click.echo(f"{entry.name}: {entry.summary}")
    click.echo(f"  for {', '.join(entry.kinds)}" + ("; needs PyTorch" if entry.needs_torch else ""))
    width = max(len(option.name) for option in entry.options) + 2
    for option in entry.options:
        choices = f" One of: {', '.join(option.choices)}." if option.choices else ""
        text = f"{option.help}{choices} {_without(option)}"
        lines = textwrap.wrap(text, WIDTH - width - 4, break_on_hyphens=False)
        click.echo(f"  {'--' + option.name:<{width}}  {lines[0]}")
        for line in lines[1:]:
            click.echo(f"  {'':<{width}}  {line}")


def _facts(entry: Entry) -> dict[str, Any]:
    from unpoison.evaluation.attack_list import FLAGS

    return {
        "name": entry.name,
        "summary": entry.summary,
        "kinds": list(entry.kinds),
        "needs_torch": entry.needs_torch,
        "options": [
            {
                "name": option.name,
                "value": FLAGS[option.name].metavar,
                "default": option.default,
                "otherwise": option.otherwise or None,
                "choices": list(option.choices) or None,
                "help": option.help,
            }
            for option in entry.options
        ],
    }


def _default(option: Any) -> str:
    return f"({option.otherwise})" if option.default is None else f"{option.default}"


def _without(option: Any) -> str:
    from unpoison.evaluation.attack_list import NEEDED

    if option.otherwise == NEEDED:
        return "Needed."
    return f"Default: {option.otherwise or option.default}."
