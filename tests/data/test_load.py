from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from unpoison.data.load import LoadOptions, load
from unpoison.errors import InputError


@pytest.mark.parametrize("source", ["nope.csv", Path("nope"), "a/b/c.npz", "nul\0byte.csv", "x" * 5000])
def test_a_source_that_does_not_exist(source):
    with pytest.raises(InputError, match=r"does not exist|cannot be read"):
        load(source)


def test_the_message_names_the_source():
    with pytest.raises(InputError, match=r"^nope.csv does not exist; give a folder of images"):
        load("nope.csv")


def test_an_empty_source_is_not_the_current_folder():
    with pytest.raises(InputError, match="the source is empty"):
        load("")


@pytest.mark.parametrize("name", ["model.pkl", "data.csv.gz", "data.npy", "README", "data.h5"])
def test_other_forms_are_refused_with_what_is_understood(text_file, name):
    with pytest.raises(
        InputError, match=rf"{name} has a form .* \.npz file .* \.csv, \.tsv or \.parquet .* digits"
    ):
        load(text_file("x", name))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match=r"pipe.csv is neither a file nor a folder"):
        load(tmp_path / "pipe.csv")


def test_digits_is_a_name_unless_written_as_a_path(tmp_path, monkeypatch, image_folder):
    monkeypatch.chdir(tmp_path)
    assert load(Path("digits")).name == "digits"
    assert len(load(Path("digits"))) == 1797
    image_folder.rename(tmp_path / "digits")
    assert len(load("digits")) == 1797
    assert len(load("./digits")) == 8
    assert len(load(Path("digits"))) == 8
    np.savez("digits.npz", x=np.zeros((4, 2, 2), dtype=np.uint8), y=[0, 1, 0, 1])
    assert len(load("digits.npz")) == 4


@pytest.mark.parametrize("name", ["t.csv", "T.CSV", "t.tsv", "t.TSV"])
def test_suffixes_in_any_case(text_file, name):
    mark = "\t" if "tsv" in name.lower() else ","
    text = "x,y\n1,a\n2,b\n3,a\n4,b\n".replace(",", mark)
    assert len(load(text_file(text, name), options=LoadOptions(label="y"))) == 4


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_file_names_that_are_not_unicode_are_refused(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv"))
    path.write_text("x,y\n")
    with pytest.raises(InputError, match=r"the file name '\\udcff.csv' is not valid Unicode"):
        load(path)


def test_a_file_that_may_not_be_read(text_file, monkeypatch):
    path = text_file("x,y\n1,a\n")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("unpoison.data.files.os.open", refuse)
    with pytest.raises(InputError, match=r"train.csv cannot be opened .*Permission denied"):
        load(path, options=LoadOptions(label="y"))


def test_importing_load_is_cheap():
    code = (
        "import sys, unpoison.data.load; "
        "print([m for m in ('sklearn', 'scipy', 'pyarrow', 'PIL') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
