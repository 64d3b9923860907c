from __future__ import annotations

import csv
import io

from unpoison.evaluation.table_layout import FORMATS, Entry, Table

TABLE = Table(
    "Rates & more",
    ("name_1", "rate", "count"),
    (("a", Entry("0.5", True), "7 / 8"), ("bb, c", Entry("12.0"), "-"), ("d", "", "12 / 24")),
    notes=("Below 1%.",),
    ends=frozenset({1}),
)


def test_text() -> None:
    assert TABLE.text().splitlines() == [
        "Rates & more",
        "",
        "name_1   rate    count",
        "------  -----  -------",
        "a        0.5*    7 / 8",
        "bb, c   12.0         -",
        "------  -----  -------",
        "d              12 / 24",
        "",
        "Below 1%.",
        "* highlighted",
    ]


def test_csv_says_what_is_highlighted_in_a_column_of_its_own() -> None:
    assert list(csv.reader(io.StringIO(TABLE.csv()))) == [
        ["name_1", "rate", "rate highlighted", "count"],
        ["a", "0.5", "true", "7 / 8"],
        ["bb, c", "12.0", "false", "-"],
        ["d", "", "false", "12 / 24"],
    ]


def test_latex() -> None:
    assert TABLE.latex().splitlines() == [
        r"\begin{table}",
        r"\caption{Rates \& more. Below 1\%.}",
        r"\centering",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"name\_1 & rate & count \\",
        r"\midrule",
        r"a & \cellcolor{yellow}0.5 & 7 / 8 \\",
        r"bb, c & 12.0 & - \\",
        r"\midrule",
        r"d &  & 12 / 24 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def test_forms_by_name() -> None:
    assert [TABLE.render(form) for form in FORMATS] == [TABLE.text(), TABLE.csv(), TABLE.latex()]


def test_a_table_without_rows_or_notes() -> None:
    empty = Table("Nothing", ("a", "b"), ())
    assert empty.text() == "Nothing\n\na  b\n-  -"
    assert empty.csv() == "a,b"
    assert r"\begin{tabular}{ll}" in empty.latex()
