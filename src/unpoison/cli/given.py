"""What the commands that read a source have in common: its options, and the command as it was given."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unpoison.data.options import LoadOptions


def load_options(given: dict[str, Any]) -> LoadOptions:
    """How the source is to be read, from the options of a command."""
    from unpoison.data.options import LoadOptions

    return LoadOptions(
        label=given["label"],
        text=given["text"],
        id_column=given["id_column"],
        split=given["split"],
        image=given["image"],
        image_size=given["image_size"],
        link=not given["copy"],
    )


def command() -> str:
    """The command as one would type it."""
    import shlex

    return shlex.join(["unpoison", *sys.argv[1:]])
