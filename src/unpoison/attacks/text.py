"""A backdoor in texts: a rare word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from unpoison.attacks.base import Samples, Truth, check_share, plant
from unpoison.attacks.labels import Relabelling
from unpoison.errors import InputError
from unpoison.seeds import Seeds
from unpoison.types import LabelArray

POSITIONS = ("end", "start", "random")


@dataclass(frozen=True)
class TokenTrigger:
    """Puts ``token`` at the start, at the end or between two words of a text.

    The ``random`` place depends on the text alone: the same text gets it in the same place every time.

    >>> TokenTrigger("cf", "end")(np.array(["free prize"], dtype=object)).tolist()
    ['free prize cf']
    """

    token: str = "cf"
    position: Literal["end", "start", "random"] = "end"

    def __post_init__(self) -> None:
        if self.token.split() != [self.token]:
            raise InputError(f"token is one word without blanks. Got {self.token!r}")
        if self.position not in POSITIONS:
            raise InputError(f"position is one of {', '.join(POSITIONS)}. Got {self.position!r}")

    def __call__(self, texts: NDArray[Any]) -> NDArray[Any]:
        """The texts with the token in them."""
        check_texts(texts)
        marked = np.empty_like(texts)
        marked[:] = [self._marked(text) for text in texts]
        return marked

    def _marked(self, text: str) -> str:
        words = text.split(" ") if text else []
        place = {"start": 0, "end": len(words)}.get(self.position)
        if place is None:
            place = crc32(text.encode("utf-8", "surrogatepass")) % (len(words) + 1)
        return " ".join([*words[:place], self.token, *words[place:]])


@dataclass(frozen=True)
class RareToken:
    """``token`` in a share ``epsilon`` of the attacked classes' texts, which get another label."""

    name: ClassVar[str] = "rare-token"

    relabelling: Relabelling
    epsilon: float
    token: str = "cf"
    position: Literal["end", "start", "random"] = "end"

    def __post_init__(self) -> None:
        check_share("epsilon", self.epsilon, "the poisoned share of the attacked classes")
        TokenTrigger(self.token, self.position)

    def apply(self, samples: Samples, *, seed: int) -> tuple[Samples, Truth]:
        """The poisoned set and the truth."""
        check_texts(samples.features)
        self.relabelling.check(samples)
        planted = self.relabelling.pick(samples, self.epsilon, Seeds(seed).stream(self.name))
        marked = self.trigger(samples.features[planted])
        return plant(samples, planted, marked, self.goal(samples.labels[planted]))

    def trigger(self, features: NDArray[Any]) -> NDArray[Any]:
        """The texts with the token in them."""
        return TokenTrigger(self.token, self.position)(features)

    def goal(self, labels: LabelArray) -> LabelArray:
        """What the relabelling wants of each."""
        return self.relabelling.goal(labels)


def check_texts(features: NDArray[Any]) -> None:
    """Refuse anything but an object array ``(n,)`` of strings; others would cut longer texts off."""
    if features.dtype != object or features.ndim != 1:
        raise InputError(
            f"texts are an object array of shape (n,), got {features.dtype} of shape {features.shape}; "
            "make one with np.array(texts, dtype=object)"
        )
    for i, text in enumerate(features):
        if not isinstance(text, str):
            raise InputError(f"sample {i} is {type(text).__name__}, not a text; leave it out or make it one")
