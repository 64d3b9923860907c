from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unpoison.adapters.judging import as_features, judge, refuse_taken, usual_cleaner
from unpoison.errors import InputError

from .builders import EXPECTED, N, images, labels, quick, rows

# --- the cleaner -------------------------------------------------------------------------------------------


def read() -> tuple[Any, Any]:
    return rows(), labels()


def forbidden() -> tuple[Any, Any]:
    raise AssertionError("read again")


def test_a_copy_of_the_cleaner_is_fitted() -> None:
    given = quick()
    fitted = judge(given, N, read)
    assert np.array_equal(fitted.keep_, EXPECTED)
    assert not hasattr(given, "keep_")


def test_a_fitted_cleaner_is_taken_as_it_is() -> None:
    given = quick().fit(*read())
    assert judge(given, N, forbidden) is given


def test_a_cleaner_fitted_on_other_data_is_refused() -> None:
    with pytest.raises(InputError, match=r"fitted on 200 samples, but there are 199 here; pass it unfitted"):
        judge(quick().fit(*read()), N - 1, forbidden)


def test_something_else_is_no_cleaner() -> None:
    with pytest.raises(InputError, match="must be an IncompatibilityClustering or None, got str"):
        judge("logistic", N, forbidden)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((4, 3), ("logistic", "auto")), ((4, 8, 8, 1), ("logistic", "auto"))],
)
def test_the_usual_cleaner_is_that_of_the_command_line(shape: Any, expected: tuple[str, str]) -> None:
    usual = usual_cleaner(np.zeros(shape, dtype=np.uint8))
    assert (usual.estimator, usual.method, usual.random_state) == (*expected, 0)


def test_larger_images_are_for_a_network() -> None:
    pytest.importorskip("torch")
    usual = usual_cleaner(np.zeros((4, 32, 32, 3), dtype=np.uint8))
    assert (usual.estimator in ("compact", "preactresnet18"), usual.method) == (True, "auto")


def test_without_a_cleaner_the_usual_one_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(
        "unpoison.adapters.judging.usual_cleaner", lambda features: seen.append(features) or quick()
    )
    assert np.array_equal(judge(None, N, read).keep_, EXPECTED)
    assert np.array_equal(seen[0], rows())


@pytest.mark.parametrize("taken", ["keep", "suspicion"])
def test_columns_of_the_verdict_are_not_overwritten(taken: str) -> None:
    refuse_taken(["label", 3], "the frame")
    with pytest.raises(InputError, match=f"the frame has a column '{taken}' already; rename or drop it"):
        refuse_taken(["label", taken], "the frame")


# --- pixels ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1 / 255])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_pixels_keep_their_meaning(scale: float, dtype: Any) -> None:
    pixels = images()
    given = (pixels * scale).astype(dtype)
    assert np.array_equal(as_features(given, where="x"), pixels)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint16])
def test_whole_numbers_up_to_255_are_pixels(dtype: Any) -> None:
    assert np.array_equal(as_features(images().astype(dtype), where="x"), images())


def test_truth_values_are_black_and_white() -> None:
    found = as_features(images(1) > 150, where="x")
    assert set(np.unique(found).tolist()) == {0, 255}


def test_normalized_pixels_are_stretched_channel_by_channel() -> None:
    pixels = images()
    pixels[0, 0, 0] = 0
    pixels[0, 0, 1] = 255
    mean, deviation = np.array([0.49, 0.48, 0.45]), np.array([0.25, 0.24, 0.26])
    normalized = ((pixels / 255 - mean) / deviation).astype(np.float32)
    assert np.array_equal(as_features(normalized, where="x"), pixels)


def test_a_channel_of_one_value_is_no_reason_to_divide_by_zero() -> None:
    given = images().astype(np.float32) - 300
    given[..., 1] = -7
    assert as_features(given, where="x")[..., 1].max() == 0


def test_channels_first_by_shape_or_as_said() -> None:
    pixels = images()
    assert np.array_equal(as_features(np.moveaxis(pixels, -1, 1), where="x"), pixels)
    small = images(channels=3, side=3)
    assert np.array_equal(as_features(np.moveaxis(small, -1, 1), where="x", channels_first=True), small)
    assert np.array_equal(as_features(small, where="x"), small)


def test_gray_images_and_rows() -> None:
    assert as_features(images(1)[..., 0], where="x").shape == (N, 8, 8, 1)
    assert as_features(rows(), where="x") is not None
    assert np.array_equal(as_features(rows(), where="x"), rows())


def test_transparent_images_lie_on_white() -> None:
    pixels = np.zeros((2, 4, 4, 4), dtype=np.uint8)
    assert (as_features(pixels, where="x") == np.full((2, 4, 4, 3), 255)).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.array([["a", "b"]]), "x has samples of type <U1; they must be numbers"),
        (np.zeros(4), r"x has samples of shape \(\); give rows"),
        (np.zeros((4, 2, 8, 8, 3)), r"x has samples of shape \(2, 8, 8, 3\)"),
        (
            np.zeros((4, 5, 8, 7)),
            r"x has images of shape \(5, 8, 7\), where neither .* move the channels last",
        ),
        (np.full((4, 8, 8, 3), np.nan), "x: sample 0 has a pixel that is not a finite number"),
    ],
)
def test_what_are_no_samples_is_named(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_features(given, where="x")


def test_the_given_array_is_left_alone() -> None:
    given = (images() / 255).astype(np.float32)
    before = given.copy()
    as_features(given, where="x")
    assert np.array_equal(given, before)
