"""Drawings with matplotlib, which is an extra: getting it, and files that can be written."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from unpoison.errors import InputError, MissingExtraError, OutputError

FORMS = (".png", ".svg", ".pdf")


def pyplot() -> Any:
    """matplotlib's, for files alone: no window is opened."""
    try:
        import matplotlib as library
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plots", "drawing figures") from error
    library.use("Agg")
    from matplotlib import pyplot as plots

    return plots


def check_target(target: Path) -> None:
    """Refuse a file that cannot be drawn into, before the work whose result it is to show."""
    if target.suffix.lower() not in FORMS:
        raise InputError(f"{target.name!r}: a figure is a file that ends in {', '.join(FORMS)}")
    if not target.absolute().parent.is_dir():
        raise OutputError(f"{target}: could not be written (there is no such folder); make it first")
    pyplot()


def save(figure: Any, target: Path) -> None:
    """Write the figure in the form that the name of the file asks for, and let go of it."""
    try:
        check_target(target)
        with warnings.catch_warnings():
            # names come from the data: letters that the font lacks are drawn as boxes
            warnings.filterwarnings("ignore", message="Glyph")
            figure.savefig(target, dpi=150)
    except OSError as error:
        raise OutputError(f"{target}: could not be written ({error.strerror or error})") from error
    finally:
        pyplot().close(figure)
