"""A small table, and its text, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Format: TypeAlias = Literal["text", "csv", "latex"]
FORMATS: tuple[Format, ...] = ("text", "csv", "latex")

STAR = "*"
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}",
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """What is in a cell; a highlighted one is a success."""

    text: str
    highlighted: bool = False


@dataclass(frozen=True)
class Table:
    """Columns and rows of entries, with a title above and notes below.

    >>> print(Table("Two", ("name", "rate"), (("a", Entry("0.5", True)), ("b", "12.0"))).text())
    Two
    <BLANKLINE>
    name   rate
    ----  -----
    a      0.5*
    b     12.0
    <BLANKLINE>
    * highlighted
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | Entry, ...], ...]
    notes: tuple[str, ...] = ()
    ends: frozenset[int] = field(default_factory=frozenset)
    """Rows with a line below them."""

    def render(self, form: Format) -> str:
        """In the form of that name."""
        return {"text": self.text, "csv": self.csv, "latex": self.latex}[form]()

    def text(self) -> str:
        """Aligned columns; a star behind what is highlighted."""
        stars = {j for row in self._entries() for j, entry in enumerate(row) if entry.highlighted}
        body = [
            [entry.text + (STAR if entry.highlighted else " " if j in stars else "") for j, entry in each]
            for each in (list(enumerate(row)) for row in self._entries())
        ]
        widths = [max(map(len, column)) for column in zip(self.columns, *body, strict=True)]
        right = self._numeric()
        rule = "  ".join("-" * width for width in widths)
        lines = [self.title, "", _aligned(self.columns, widths, right), rule]
        for i, row in enumerate(body):
            lines.append(_aligned(row, widths, right))
            if i in self.ends:
                lines.append(rule)
        notes = [*self.notes, *([f"{STAR} highlighted"] if stars else [])]
        return "\n".join([*lines, *(["", *notes] if notes else [])])

    def csv(self) -> str:
        """Plain values; a column with highlighted cells is followed by one that says which they are."""
        stars = {j for row in self._entries() for j, entry in enumerate(row) if entry.highlighted}
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        names = ((name, f"{name} highlighted") for name in self.columns)
        writer.writerow(_with_marks(names, stars))
        for row in self._entries():
            writer.writerow(
                _with_marks(((entry.text, str(entry.highlighted).lower()) for entry in row), stars)
            )
        return file.getvalue().removesuffix("\n")

    def latex(self) -> str:
        """A table that needs the packages booktabs and colortbl (with xcolor)."""
        spec = "".join("r" if numeric else "l" for numeric in self._numeric())
        lines = [r"\begin{table}", rf"\caption{{{_escaped(' '.join((f'{self.title}.', *self.notes)))}}}"]
        lines += [r"\centering", rf"\begin{{tabular}}{{{spec}}}", r"\toprule"]
        lines += [" & ".join(map(_escaped, self.columns)) + r" \\", r"\midrule"]
        for i, row in enumerate(self._entries()):
            cells = (
                (r"\cellcolor{yellow}" if entry.highlighted else "") + _escaped(entry.text) for entry in row
            )
            lines.append(" & ".join(cells) + r" \\")
            if i in self.ends:
                lines.append(r"\midrule")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])

    def _entries(self) -> list[tuple[Entry, ...]]:
        return [
            tuple(entry if isinstance(entry, Entry) else Entry(entry) for entry in row) for row in self.rows
        ]

    def _numeric(self) -> list[bool]:
        """Columns that hold nothing but numbers, dashes and blanks; they are aligned on the right."""
        return [
            all(entry.text[:1] in "0123456789-" for entry in column)
            for column in (list(column) for column in zip(*self._entries(), strict=True))
        ] or [False] * len(self.columns)


def _aligned(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    aligned = (
        cell.rjust(width) if is_right else cell.ljust(width)
        for cell, width, is_right in zip(cells, widths, right, strict=True)
    )
    return "  ".join(aligned).rstrip()


def _with_marks(pairs: Iterable[tuple[str, str]], marked: set[int]) -> list[str]:
    """The first of each pair, and the second too where the column is marked."""
    return [
        value
        for j, (plain, mark) in enumerate(pairs)
        for value in ((plain, mark) if j in marked else (plain,))
    ]


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
