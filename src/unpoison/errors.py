"""Every exception that unpoison raises on purpose.

The command line turns an :class:`UnpoisonError` into one line on stderr and exit code 2; anything else
is a bug and keeps its traceback.
"""

from __future__ import annotations


class UnpoisonError(Exception):
    """Base of all errors raised on purpose."""


class InputError(UnpoisonError, ValueError):
    """The data or an option cannot be used. The message names the input, the value and the fix."""


class MissingExtraError(UnpoisonError, ImportError):
    """An optional package is needed and absent. The message names the extra to install."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed. "
            f"Install it with: pip install 'unpoison[{extra}]'"
        )


class CheckpointError(UnpoisonError):
    """Saved rounds belong to another run (other data, settings, learner or seed)."""


class OutputError(UnpoisonError):
    """The results cannot be written or read back where they were asked for."""
