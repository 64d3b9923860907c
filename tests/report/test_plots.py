from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from unpoison.errors import InputError, OutputError
from unpoison.report.plots import FORMS, check_target, pyplot, save


@pytest.mark.parametrize("form", FORMS)
def test_a_figure_in_every_form_with_letters_that_no_font_has(form: str, tmp_path: Path) -> None:
    figure, axes = pyplot().subplots()
    axes.set_title("\U00013000 \u4e2d", parse_math=False)
    before = len(pyplot().get_fignums())
    save(figure, tmp_path / f"figure{form}")
    assert (tmp_path / f"figure{form}").stat().st_size > 500
    assert len(pyplot().get_fignums()) == before - 1


def test_targets_that_cannot_be_drawn_into(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'a.txt': a figure is a file that ends in .png"):
        check_target(tmp_path / "a.txt")
    with pytest.raises(OutputError, match="could not be written"):
        check_target(tmp_path / "nowhere" / "a.png")
    check_target(tmp_path / "a.PNG")


def test_a_figure_that_fails_is_let_go_of(tmp_path: Path) -> None:
    figure, _ = pyplot().subplots()
    (tmp_path / "taken.png").mkdir()
    with pytest.raises(OutputError, match="could not be written"):
        save(figure, tmp_path / "taken.png")
    assert not pyplot().get_fignums()
