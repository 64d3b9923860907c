"""The samples that the page shows, as many as its size allows.

The first of them stand in the page as they are, for readers without JavaScript; all of them are in its data,
from which the script builds one screenful at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unpoison.core.result import Sanitization
from unpoison.data.container import Dataset, Preview
from unpoison.report import text
from unpoison.report.embed import to_json
from unpoison.report.review import Review
from unpoison.report.study import MAX_CLOSE, MAX_KEPT, Study, preview
from unpoison.report.thumbnails import CLOSE_SIDE, LARGE_SIDE, PIXELATED_BELOW, SMALL_SIDE, encode
from unpoison.types import IndexArray

BUDGET = 24_000_000
"""Characters of data, pictures included, that a page may hold; with all the rest it stays below 30 MB."""

LARGE_BUDGET = 12_000_000
"""The same with large pictures, which a page gets if all of its samples fit into this."""

MAX_COLUMNS = 10
PICTURES_A_CHUNK = 64
"""Pictures that the script decodes together, when one of them is wanted."""

_EXCERPT = 400
_NEAR_EXCERPT = 200


@dataclass(frozen=True)
class Content:
    """What there is to see of a sample: at most one of the three."""

    picture: int | None = None
    """Its number in the album."""
    excerpt: str | None = None
    cells: tuple[str, ...] = ()

    def plain(self) -> int | str | list[str] | None:
        """As the page's data hold it."""
        return list(self.cells) or (self.excerpt if self.picture is None else self.picture)


@dataclass(frozen=True)
class Near:
    """A kept sample beside another."""

    id: str
    content: Content


@dataclass(frozen=True)
class Card:
    """One sample as the page shows it."""

    id: str
    label: int
    called: int
    suspicion: float
    run_keep: bool
    keep: bool
    reviewed: bool
    content: Content
    near_label: Near | None = None
    near_called: Near | None = None

    def row(self) -> list[object]:
        """As the page's data hold it; ``samples.js`` reads this order."""
        shown = text.printable(self.id)
        near = [
            [text.printable(n.id), n.content.plain()] if n else None
            for n in (self.near_label, self.near_called)
        ]
        return [
            self.id,
            None if shown == self.id else shown,
            self.label,
            self.called,
            round(self.suspicion, 6),
            int(self.run_keep),
            int(self.keep),
            int(self.reviewed),
            self.content.plain(),
            *near,
        ]


@dataclass(frozen=True)
class PageSamples:
    """The samples of a page, their pictures, and how many had no room."""

    cards: tuple[Card, ...]
    rows: tuple[str, ...]
    """The cards as JSON."""
    pictures: tuple[str, ...]
    columns: tuple[str, ...]
    n_more_columns: int
    n_left_out: int

    def chunks(self) -> list[str]:
        """The pictures as JSON lists."""
        starts = range(0, len(self.pictures), PICTURES_A_CHUNK)
        return [to_json(self.pictures[start : start + PICTURES_A_CHUNK]) for start in starts]

    @property
    def tiny(self) -> bool:
        """Whether the pictures are so small that they are shown pixel by pixel."""
        return bool(self.pictures) and self.pictures[0].startswith("png")

    def uri(self, number: int) -> str:
        """A picture as an address, for a card that stands in the page itself."""
        return "data:image/" + self.pictures[number]


def page_samples(dataset: Dataset, result: Sanitization, found: Study, review: Review) -> PageSamples:
    """Cards in the order of the study, and those a person decided about, until the budget is spent."""
    order = np.concatenate([found.order, np.setdiff1d(np.flatnonzero(review.decided), found.order)])
    if dataset.kind == "image" and len(order) <= MAX_CLOSE + MAX_KEPT:
        maker = _CardMaker(dataset, result, found, review, side=LARGE_SIDE)
        large = _until_spent(maker, order, min(LARGE_BUDGET, BUDGET))
        if large.n_left_out == 0:
            return large
    return _until_spent(_CardMaker(dataset, result, found, review, side=CLOSE_SIDE), order, BUDGET)


def _until_spent(maker: _CardMaker, order: IndexArray, budget: int) -> PageSamples:
    cards: list[Card] = []
    rows: list[str] = []
    spent = 0
    for rank, index in enumerate(order.tolist()):
        card = maker.card(index, close=rank < MAX_CLOSE + MAX_KEPT)
        rows.append(to_json(card.row()))
        spent += len(rows[-1])
        if spent + maker.album.size > budget:
            rows.pop()
            break
        cards.append(card)
    return PageSamples(
        cards=tuple(cards),
        rows=tuple(rows),
        pictures=tuple(maker.album.pictures),
        columns=tuple(text.printable(name, 40) for name in maker.columns),
        n_more_columns=maker.n_more_columns,
        n_left_out=len(order) - len(cards),
    )


class Album:
    """Pictures, each held once; those that are looked at first have at most ``side`` pixels a side."""

    def __init__(self, side: int = CLOSE_SIDE) -> None:
        self._side = side
        self.pictures: list[str] = []
        self.size = 0
        self._numbers: dict[tuple[int, bool], int] = {}

    def number(self, index: int, *, close: bool, image: Callable[[], NDArray[np.uint8]]) -> int:
        """The number of the picture of sample ``index``; ``image`` is asked only if it is not there yet."""
        key = (index, close)
        if key not in self._numbers:
            pixels = image()
            exact = close and max(pixels.shape[:2]) <= PIXELATED_BELOW
            encoded = encode(pixels, side=self._side if close else SMALL_SIDE, exact=exact)
            self._numbers[key] = len(self.pictures)
            self.pictures.append(encoded)
            self.size += len(encoded) + 3
        return self._numbers[key]


class _CardMaker:
    """Makes cards of samples; what is the same for all of them is looked up once."""

    def __init__(
        self, dataset: Dataset, result: Sanitization, found: Study, review: Review, *, side: int
    ) -> None:
        self.album = Album(side)
        self._dataset, self._result, self._review = dataset, result, review
        self._near = dict(
            zip(
                found.near.samples.tolist(),
                zip(found.near.of_label.tolist(), found.near.of_called.tolist(), strict=True),
                strict=True,
            )
        )
        all_columns = _column_names(dataset, found.order)
        first = [trait.column for traits in found.traits for trait in traits if trait.column in all_columns]
        self.columns = tuple(dict.fromkeys([*first, *all_columns]))[:MAX_COLUMNS]
        self.n_more_columns = len(all_columns) - len(self.columns)

    def card(self, index: int, *, close: bool) -> Card:
        of_label, of_called = self._near.get(index, (-1, -1))
        return Card(
            id=self._dataset.ids[index],
            label=int(self._dataset.labels[index]),
            called=int(self._result.predicted[index]),
            suspicion=float(self._result.suspicion[index]),
            run_keep=bool(self._result.keep[index]),
            keep=bool(self._review.keep[index]),
            reviewed=bool(self._review.decided[index]),
            content=self._content(index, close=close, limit=_EXCERPT),
            near_label=self._neighbour(of_label, close=close),
            near_called=self._neighbour(of_called, close=close),
        )

    def _neighbour(self, index: int, *, close: bool) -> Near | None:
        if index < 0:
            return None
        return Near(self._dataset.ids[index], self._content(index, close=close, limit=_NEAR_EXCERPT))

    def _content(self, index: int, *, close: bool, limit: int) -> Content:
        if self._dataset.kind == "image" and not close:
            # what the models saw, which is at hand: thousands of files need not be opened again
            image = self._dataset.features[index]
            return Content(picture=self.album.number(index, close=False, image=lambda: image))
        seen = preview(self._dataset, index)
        if seen.image is not None:
            pixels = seen.image
            return Content(picture=self.album.number(index, close=close, image=lambda: pixels))
        if seen.columns is not None:
            values = dict(seen.columns)
            return Content(cells=tuple(text.printable(values.get(name, ""), 40) for name in self.columns))
        return Content(excerpt=None if seen.text is None else text.excerpt(seen.text, limit))


def _column_names(dataset: Dataset, order: IndexArray) -> tuple[str, ...]:
    """The columns of the first sample that can be shown and has any."""
    if dataset.kind == "image":
        return ()
    shown: Iterable[Preview] = (preview(dataset, int(index)) for index in order[:MAX_KEPT])
    return next((tuple(name for name, _ in seen.columns) for seen in shown if seen.columns), ())
