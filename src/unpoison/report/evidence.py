"""What the numbers behind a judgement mean, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from unpoison.report.text import percent, printable

_EXPLANATIONS = {
    "agreement": "How often models that did not train on the group agree with its label.",
    "elsewhere": "How often they give another, as surely as to what they know of that class.",
}

_DISTANCES = {
    "met": "By how many standard deviations it stands apart from its class, for models that trained on it.",
    "unmet": "By how many from what they call the same, for judges, which met nothing like it.",
    "kept": "How much of its distance is left for judges: a planted group dissolves, a natural one does not.",
}
"""Those that may be beyond 0 and 1."""
_ERROR = "_error"
"""After the name of a number: its standard error, which is shown with it."""

_NOT_MEASURED = 99.0
"""From this standard error on there was nothing to compare a group with."""
_FROM_JUDGES = ("unmet", "kept")

_MAX_LINES = 12


@dataclass(frozen=True)
class EvidenceLine:
    """One number of the evidence: its name, its value as text, what it says."""

    name: str
    value: str
    meaning: str
    share: float | None
    """The value as a part of one, for the bar; None where it is not one."""


def explain(evidence: Mapping[str, float | None]) -> list[EvidenceLine]:
    """Every number in its order; those known here as shares with their meaning, the others as they are."""
    shown = [key for key in evidence if not (key.endswith(_ERROR) and key.removesuffix(_ERROR) in evidence)]
    lines = [_line(key, evidence[key], evidence.get(key + _ERROR)) for key in shown[:_MAX_LINES]]
    if is_compared(evidence):
        return lines
    return [replace(line, value="not measured") if line.name in _FROM_JUDGES else line for line in lines]


def is_compared(evidence: Mapping[str, float | None]) -> bool:
    """Whether judges had anything to compare the group with."""
    return (evidence.get("unmet_error") or 0.0) < _NOT_MEASURED


def _line(key: str, value: float | None, error: float | None) -> EvidenceLine:
    name = printable(key.replace("_", " "), 40)
    if value is None:
        return EvidenceLine(name, "not known", "", None)
    if key in _EXPLANATIONS and 0 <= value <= 1:
        return EvidenceLine(name, percent(value), _EXPLANATIONS[key], round(value, 4))
    text = f"{value:,.4g}" if error is None else f"{value:,.3g} ± {error:,.2g}"
    return EvidenceLine(name, text, _DISTANCES.get(key, ""), None)
