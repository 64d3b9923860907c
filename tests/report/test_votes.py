from __future__ import annotations

import dataclasses

import numpy as np

from unpoison.core.result import VoteRecord
from unpoison.report import votes
from unpoison.report.votes import vote_matrix

from .builders import judged
from .test_page import texts


def test_components_with_sizes_and_agreement() -> None:
    dataset = texts(n=6)
    result = judged(dataset, [0, 3])
    record = VoteRecord(
        voters=("judge 1", "judge 2"),
        predictions=np.array([[1, 1, 2, 0, 1, 2], [1, 1, 2, 1, 0, 2]], dtype=np.int32),
        losses=np.zeros((2, 6), dtype=np.float32),
        asked=np.array([[True] * 6, [True, True, True, True, False, False]]),
    )
    result = dataclasses.replace(result, votes=record, components=np.array([[1, 0, 0, 1, 2, 0]]))
    found = vote_matrix(dataset.labels, result, method="groups")
    assert found.voters == ("judge 1", "judge 2")
    assert [dataclasses.astuple(component) for component in found.components] == [
        ("the rest", (1, 2), 3, 0, (1.0, 1.0)),
        ("group 1", (0,), 2, 2, (0.5, 0.0)),
        ("group 2", (1,), 1, 0, (1.0, None)),
    ]


def test_names_of_restarts_and_rounds() -> None:
    dataset = texts(n=6)
    components = np.array([[0, 0, 1, 1, -1, -1], [0, 0, 0, 0, 0, 0]])
    result = dataclasses.replace(judged(dataset, []), components=components)
    found = vote_matrix(dataset.labels, result, method="ispl")
    assert [component.name for component in found.components] == [
        *("restart 1, left over", "restart 1, round 1", "restart 1, round 2", "restart 2, round 1")
    ]
    assert (found.voters, found.components[0].agreement) == ((), ())
    single = dataclasses.replace(result, components=components[:1])
    assert vote_matrix(dataset.labels, single, method="ispl").components[1].name == "round 1"


def test_many_components_and_voters_are_bounded() -> None:
    dataset = texts(n=60)
    n_voters = votes.MAX_VOTERS + 5
    record = VoteRecord(
        voters=tuple(map(str, range(n_voters))),
        predictions=np.zeros((n_voters, 60), dtype=np.int32),
        losses=np.zeros((n_voters, 60), dtype=np.float32),
        asked=np.ones((n_voters, 60), dtype=np.bool_),
    )
    result = dataclasses.replace(judged(dataset, []), components=np.arange(60)[None, :], votes=record)
    found = vote_matrix(dataset.labels, result, method="groups")
    assert (len(found.components), found.n_more_components) == (
        votes.MAX_COMPONENTS,
        60 - votes.MAX_COMPONENTS,
    )
    assert (len(found.voters), found.n_more_voters) == (votes.MAX_VOTERS, 5)
    assert len(found.components[0].agreement) == votes.MAX_VOTERS
