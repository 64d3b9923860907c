from __future__ import annotations

import base64
import io
import json

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from unpoison.data.container import Dataset, Preview
from unpoison.report import samples as samples_module
from unpoison.report.review import Review
from unpoison.report.samples import PICTURES_A_CHUNK, PageSamples, page_samples
from unpoison.report.study import study

from .builders import judged, make, page
from .test_page import check, data


def shown(dataset: Dataset, removed: range) -> PageSamples:
    result = judged(dataset, removed)
    return page_samples(dataset, result, study(dataset, result), Review.none(result))


def pictures(n: int, side: int = 6) -> Dataset:
    pixels = np.random.default_rng(0).integers(0, 256, (n, side, side, 3), dtype=np.uint8)
    return make("image", lambda i: Preview(image=pixels[i]), n=n, features=pixels)


def test_every_card_has_its_picture_and_neighbours_share_theirs() -> None:
    found = shown(pictures(120), range(0, 60, 3))
    assert len(found.cards) == 120
    numbers = [card.content.picture for card in found.cards]
    assert len(set(numbers)) == 120, "no picture is held twice"
    assert len(found.pictures) == 120
    card = found.cards[0]
    assert card.near_label is not None
    assert card.near_called is not None
    of_id = {other.id: other.content.picture for other in found.cards}
    assert of_id[card.near_called.id] == card.near_called.content.picture
    assert sum(len(json.loads(chunk)) for chunk in found.chunks()) == 120
    assert len(json.loads(found.chunks()[0])) == PICTURES_A_CHUNK
    assert found.uri(0) == "data:image/" + json.loads(found.chunks()[0])[0]
    assert found.tiny


def test_rows_are_what_the_cards_are() -> None:
    found = shown(pictures(120), range(0, 60, 3))
    row = json.loads(found.rows[0])
    card = found.cards[0]
    assert card.near_label is not None
    assert row[:10] == [
        *(card.id, None, card.label, card.called, round(card.suspicion, 6), 0, 0, 0, card.content.picture),
        [card.near_label.id, card.near_label.content.picture],
    ]


def test_samples_far_down_are_shown_as_the_models_saw_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples_module, "MAX_CLOSE", 10)
    monkeypatch.setattr(samples_module, "MAX_KEPT", 0)
    asked: list[int] = []
    pixels = np.zeros((120, 6, 6, 3), dtype=np.uint8)

    def show(index: int) -> Preview:
        asked.append(index)
        return Preview(image=pixels[index])

    dataset = make("image", show, features=pixels)
    found = shown(dataset, range(0, 120, 3))
    assert len(found.cards) == 120
    assert set(asked) >= {card_index(card.id) for card in found.cards[:10]}
    assert not set(asked) & {card_index(card.id) for card in found.cards[40:100] if not near(found, card.id)}


def card_index(sample_id: str) -> int:
    return int(sample_id.split()[1])


def near(found: PageSamples, sample_id: str) -> bool:
    return any(
        n is not None and n.id == sample_id
        for card in found.cards
        for n in (card.near_label, card.near_called)
    )


def test_the_budget_is_kept_and_what_has_no_room_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples_module, "BUDGET", 60_000)
    found = shown(pictures(600, side=24), range(0, 600, 3))
    assert 5 < len(found.cards) < 100
    assert found.n_left_out == 400 - len(found.cards)
    assert sum(map(len, found.rows)) + sum(map(len, found.pictures)) < 60_000 + 3 * 3000
    dataset = pictures(600, side=24)
    html = page(dataset, judged(dataset, range(0, 600, 3)))
    assert f"{400 - len(found.cards)} more are in" in html


def photographs(n: int, side: int) -> NDArray[np.uint8]:
    """Smooth shapes with some grain, as photographs are, each another."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (500, 9, 9, 3), dtype=np.uint8)
    base = np.stack(
        [np.asarray(Image.fromarray(c).resize((side, side), Image.Resampling.BICUBIC)) for c in coarse]
    )
    grain = rng.integers(-8, 9, (n, 1, side, 3), dtype=np.int8)
    chosen = np.arange(n) % len(base)
    return (base[chosen] // 2 + 64 + grain).astype(np.uint8)


def longest_side(found: PageSamples) -> int:
    sides = [
        max(Image.open(io.BytesIO(base64.b64decode(text.split(",")[1]))).size) for text in found.pictures
    ]
    return max(sides)


def test_few_pictures_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = photographs(40, 150)
    dataset = make("image", lambda i: Preview(image=pixels[i]), n=40, features=pixels)
    large = shown(dataset, range(0, 12, 3))
    assert (longest_side(large), len(large.cards)) == (128, 40)
    monkeypatch.setattr(samples_module, "LARGE_BUDGET", sum(map(len, large.pictures)) // 2)
    many = shown(dataset, range(0, 12, 3))
    assert (longest_side(many), len(many.cards)) == (64, 40), "smaller, but all of them"
    monkeypatch.undo()
    monkeypatch.setattr(samples_module, "MAX_CLOSE", 10)
    monkeypatch.setattr(samples_module, "MAX_KEPT", 0)
    assert longest_side(shown(dataset, range(0, 36, 3))) == 64


def test_ten_thousand_removed_photographs_stay_below_thirty_megabytes() -> None:
    n = 10_600
    pixels = photographs(n, 64)
    dataset = make("image", lambda i: Preview(image=pixels[i]), n=n, features=pixels)
    html = page(dataset, judged(dataset, range(10_000)))
    assert len(html.encode("utf-8")) < 30_000_000
    rows = data(html)["samples"]
    assert sum(row[5] == 0 for row in rows) == 10_000, "every one of them is on the page"
    assert all(isinstance(row[8], int) for row in rows)
    assert all(row[9] is not None for row in rows[:2000])
    n_pictures = sum(len(json.loads(text)) for about, text in check(html).scripts if "pictures" in str(about))
    assert n_pictures == max(row[8] for row in rows) + 1
