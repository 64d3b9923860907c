from __future__ import annotations

import os

import numpy as np
import pytest

from unpoison.data.files import (
    check_budget,
    check_keep,
    check_utf8,
    describe,
    open_regular,
    read_regular,
    refusing,
    shown,
    writing,
)
from unpoison.errors import InputError, OutputError


@pytest.mark.parametrize(
    ("text", "expected"),
    [("plain é <b>.csv", "plain é <b>.csv"), ("two\nlines", "'two\\nlines'"), ("", "''")],
)
def test_shown_stays_on_one_line(text, expected):
    assert shown(text) == expected


def test_describe_is_one_short_line():
    assert describe(ValueError("a\nb")) == "ValueError: a b"
    assert describe(KeyError()) == "KeyError"
    assert len(describe(ValueError("x" * 10_000))) < 300


def test_refusing_turns_any_exception_into_an_input_error():
    with (
        pytest.raises(InputError, match=r"a.bin cannot be read \(KeyError: 'k'\); fix it"),
        refusing("a.bin", "fix it"),
    ):
        raise KeyError("k")


def test_refusing_lets_our_own_errors_through():
    with pytest.raises(OutputError, match="mine"), refusing("a.bin", "fix it"):
        raise OutputError("mine")


def test_writing_turns_os_errors_into_output_errors(tmp_path):
    with pytest.raises(OutputError, match="cannot write to"), writing(tmp_path):
        (tmp_path / "absent" / "file").write_bytes(b"")


def test_the_budget_names_both_numbers():
    check_budget("a.npz", 100, 100)
    with pytest.raises(InputError, match=r"a.npz: needs about 1,001 bytes .* limit of 1,000 \(max_bytes\)"):
        check_budget("a.npz", 1001, 1000)


@pytest.mark.parametrize(
    "keep", [np.ones(3, dtype=bool), np.ones(4, dtype=np.int64), np.ones((4, 1), dtype=bool)]
)
def test_keep_must_be_one_truth_value_a_sample(keep):
    with pytest.raises(InputError, match="keep must be 4 truth values"):
        check_keep(keep, 4)


def test_lone_surrogates_are_refused():
    with pytest.raises(InputError, match=r"the file name 'a\\udcff' is not valid Unicode"):
        check_utf8("folder", "file name", "a\udcff")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_without_hanging(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match=r"pipe.csv is not a regular file"):
        read_regular(tmp_path / "pipe.csv", "pipe.csv", limit=10)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="here is a folder; give a file"), open_regular(tmp_path, "here"):
        raise AssertionError


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link").symlink_to("secret")
    with pytest.raises(InputError, match="link cannot be opened"), open_regular(tmp_path / "link", "link"):
        pass


def test_a_file_over_the_limit_is_refused(tmp_path):
    (tmp_path / "big").write_bytes(b"x" * 11)
    with pytest.raises(InputError, match="big: needs about 11 bytes"):
        read_regular(tmp_path / "big", "big", limit=10)
    assert read_regular(tmp_path / "big", "big", limit=11) == b"x" * 11
