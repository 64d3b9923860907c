"""unpoison: find the part of a training set that was planted there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["IncompatibilityClustering", "Sanitization", "__version__"]

if TYPE_CHECKING:
    from unpoison.core.result import Sanitization
    from unpoison.estimator import IncompatibilityClustering


def __getattr__(name: str) -> Any:
    """Load the public classes when they are first asked for: importing scikit-learn takes a second."""
    if name == "IncompatibilityClustering":
        from unpoison.estimator import IncompatibilityClustering

        return IncompatibilityClustering
    if name == "Sanitization":
        from unpoison.core.result import Sanitization

        return Sanitization
    raise AttributeError(f"module 'unpoison' has no attribute {name!r}")
