"""Drawing with matplotlib, which is an extra, into a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unpoison.errors import InputError, MissingExtraError, OutputError

FORMS = (".png", ".svg", ".pdf")


def pyplot() -> Any:
    """The drawing functions, without a screen."""
    try:
        import matplotlib as library
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots", "drawing figures") from error
    library.use("Agg")
    from matplotlib import pyplot as functions

    return functions


def save(figure: Any, target: Path) -> None:
    """Write the figure in the form that the file's ending says, and forget it."""
    if target.suffix.lower() not in FORMS:
        raise InputError(f"{target.name!r}: a figure is a file that ends in {', '.join(FORMS)}")
    try:
        figure.tight_layout()
        figure.savefig(target, dpi=150)
    except OSError as error:
        raise OutputError(f"{target}: could not be written ({error.strerror or error})") from error
    finally:
        pyplot().close(figure)
