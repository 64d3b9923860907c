from __future__ import annotations

import pytest

from unpoison.data.options import LoadOptions
from unpoison.errors import InputError


def test_the_defaults_are_valid_and_bounded():
    options = LoadOptions()
    assert options.max_bytes == 4 * 2**30
    assert options.max_pixels == 64_000_000


@pytest.mark.parametrize("field", ["image_size", "max_pixels", "max_bytes"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "many"])
def test_counts_must_be_whole_and_positive(field, value):
    with pytest.raises(InputError, match=f"{field} must be a whole number .* got {value!r}"):
        LoadOptions(**{field: value})


def test_huge_image_sizes_are_refused():
    with pytest.raises(InputError, match="image_size must be at most 4096, got 5000"):
        LoadOptions(image_size=5000)


@pytest.mark.parametrize(
    "clash",
    [
        {"label": "a", "text": "a"},
        {"label": "a", "id_column": "a"},
        {"label": "a", "image": "a"},
        {"text": "a", "id_column": "a"},
        {"text": "a", "image": "b"},
    ],
)
def test_one_column_cannot_have_two_roles(clash):
    with pytest.raises(InputError, match="the column 'a' is given as"):
        LoadOptions(**clash)
