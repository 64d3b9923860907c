from __future__ import annotations

import csv
import hashlib
import io
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.data.records import is_number, read_records, sniff_delimiter, strip_line_end
from unpoison.errors import InputError

BIG = 2**30


def read(data: str | bytes, form: str = "csv", **options):
    content = data.encode() if isinstance(data, str) else data
    return read_records(content, "t.csv", form=form, max_bytes=BIG, **options)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_records_know_their_line_and_their_text(end):
    text = end.join(["a,b", '1,"two', 'lines"', "", "3,x", ""])
    records = read(text)
    assert records.header.cells == ("a", "b")
    assert [row.line for row in records.rows] == [2, 5]
    assert records.rows[0].cells == ("1", f"two{end}lines")
    assert records.rows[0].raw == f'1,"two{end}lines"{end}'
    assert records.rows[0].sha256() == hashlib.sha256(f'1,"two{end}lines"'.encode()).hexdigest()


def test_kept_records_are_byte_for_byte_what_came():
    data = b'\xef\xbb\xbfa;"b"\r\n1;"x ""y"" z"\r\n2;plain\r\n"3";last'
    records = read(data)
    assert records.delimiter == ";"
    assert records.raw_bytes([True] * 3) == data
    assert records.raw_bytes([False, True, False]) == b'\xef\xbb\xbfa;"b"\r\n2;plain\r\n'
    assert records.raw_bytes([True, False, True]) == b'\xef\xbb\xbfa;"b"\r\n1;"x ""y"" z"\r\n"3";last'


def test_tsv_knows_no_quotes():
    records = read('a\tb\n"1\t2"x\n"\t"\n', "tsv")
    assert [row.cells for row in records.rows] == [('"1', '2"x'), ('"', '"')]


def test_separators_of_unicode_do_not_end_a_line():
    records = read("a,b\n1,x\u2028y\x0b\x0cz\n")
    assert records.rows[0].cells == ("1", "x\u2028y\x0b\x0cz")


@pytest.mark.parametrize(
    ("text", "label", "expected"),
    [
        ("a,b,c\n", None, ","),
        ("a;b;c\n", None, ";"),
        ("a\tb\n", None, "\t"),
        ("only\n", None, ","),
        ("text, with comma;y\n", "y", ";"),
        ('"a;b;c",d\n', None, ","),
        ("", None, ","),
    ],
)
def test_the_delimiter_is_seen_in_the_header(text, label, expected):
    assert sniff_delimiter(text, label) == expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "t.csv:1: the file is empty; it needs a header"),
        (b"\n\n", "t.csv:1: the file is empty"),
        (b"1,2\n3,4\n", r"t.csv:1: the first line holds only numbers \('1', ...\); add a header"),
        (b"a,b\n1,2\n1,2,3\n", "t.csv:3: 3 fields where the header has 2"),
        (b"a,b\n1\n", "t.csv:2: 1 fields where the header has 2"),
        (b"a,a\n1,2\n", "t.csv:1: the column name 'a' occurs more than once"),
        (b"a,,b\n1,2,3\n", "t.csv:1: column 2 has no name"),
        (b"a, \n1,2\n", "t.csv:1: column 2 has no name"),
        (b"a,b\n1,\0\n", "t.csv:2: holds a NUL byte"),
        (b"a,b\n1,2\n1,\xff\n", "t.csv:3: the byte 0xff is not UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), r"t.csv:1: .*NUL"),
        (b'a,b\n1,2\n1,"open\n2,3\n', "t.csv:3: not a valid record .* check the quotes"),
        (b'a,b\n1,"x"y\n', "t.csv:2: not a valid record"),
    ],
)
def test_bad_files_are_refused_with_the_line(data, message):
    with pytest.raises(InputError, match=message):
        read(data)


def test_long_fields_are_read_and_the_limit_is_put_back():
    before = csv.field_size_limit()
    long = "x" * (before + 1)
    assert read(f"a,b\n1,{long}\n").rows[0].cells[1] == long
    assert csv.field_size_limit() == before


def test_many_small_cells_are_bounded():
    data = b"a" + b"".join(b",c%d" % i for i in range(999)) + b"\n" + (b"," * 999 + b"\n") * 100
    with pytest.raises(InputError, match=r"t.csv: needs about .* limit of 1,000,000 \(max_bytes\)"):
        read_records(data, "t.csv", form="csv", max_bytes=1_000_000)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("1", True),
        (" -2.5e3 ", True),
        ("nan", True),
        ("inf", True),
        ("", False),
        ("1_000", False),
        ("x", False),
    ],
)
def test_is_number(cell, expected):
    assert is_number(cell) == expected


@pytest.mark.parametrize("text", ["a", "a\n", "a\r\n", "a\r"])
def test_one_line_end_is_stripped(text):
    assert strip_line_end(text) == "a"


def test_only_one_line_end_is_stripped():
    assert strip_line_end("a\n\n") == "a\n"


CELLS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_what_csv_writes_is_read_back_exactly(rows, end):
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([("first", "second"), *rows])
    data = stream.getvalue().encode()
    records = read(data)
    assert [row.cells for row in records.rows] == rows
    assert records.raw_bytes([True] * len(rows)) == data


@given(st.binary(max_size=200))
def test_any_bytes_give_records_or_an_input_error(data):
    for form in ("csv", "tsv"):
        with suppress(InputError):
            records = read(b"a,b\tc\n" + data, form)
            assert all(len(row.cells) == len(records.header.cells) for row in records.rows)
