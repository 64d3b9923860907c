"""The ``unpoison`` program."""

from __future__ import annotations

import sys
import traceback

import click

from unpoison import __version__
from unpoison.cli.apply import apply
from unpoison.cli.attacks import attacks
from unpoison.cli.bench import bench
from unpoison.cli.clean import clean
from unpoison.cli.data import data
from unpoison.cli.demo import demo
from unpoison.cli.explain import explain
from unpoison.cli.measure import measure
from unpoison.cli.poison import poison
from unpoison.cli.text import shown
from unpoison.cli.verify import verify
from unpoison.errors import UnpoisonError

FAULT = 3
"""Exit code after an error that nobody foresaw: Python's own, 1, would say that something was found."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 1 would say that something was found."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="unpoison")
def app() -> None:
    """Find the part of a training set that was planted there, and get back a set that is safe to train on.

    Exit codes: 0 fine, 1 findings (clean with --fail-above, verify, data check) or experiments that failed
    (bench run), 2 a usage or input error, 3 a fault in unpoison itself, 130 interrupted.
    """


app.add_command(clean)
app.add_command(apply)
app.add_command(explain)
app.add_command(verify)
app.add_command(measure)
app.add_command(data)
app.add_command(demo)
app.add_command(poison)
app.add_command(attacks)
app.add_command(bench)


def main() -> None:
    """Run the program; every error that was raised on purpose becomes one line and exit code 2."""
    try:
        app(prog_name="unpoison", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("interrupted; clean goes on from its last finished step with --resume", err=True)
        sys.exit(INTERRUPTED)
    except UnpoisonError as error:
        click.echo(f"error: {shown(error)}", err=True)
        sys.exit(2)
    except Exception:
        traceback.print_exc()
        sys.exit(FAULT)
