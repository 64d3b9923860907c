"""unpoison: find the part of a training set that was planted there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "IncompatibilityClustering",
    "Sanitization",
    "compatibility",
    "compatibility_matrix",
    "expansion_error",
    "__version__",
]

if TYPE_CHECKING:
    from unpoison.core.result import Sanitization
    from unpoison.estimator import IncompatibilityClustering
    from unpoison.measuring import compatibility, compatibility_matrix, expansion_error


def __getattr__(name: str) -> Any:
    """Load the public names when they are first asked for: importing scikit-learn takes a second."""
    if name == "IncompatibilityClustering":
        from unpoison.estimator import IncompatibilityClustering

        return IncompatibilityClustering
    if name == "Sanitization":
        from unpoison.core.result import Sanitization

        return Sanitization
    if name in ("compatibility", "compatibility_matrix", "expansion_error"):
        from unpoison import measuring

        return getattr(measuring, name)
    raise AttributeError(f"module 'unpoison' has no attribute {name!r}")
