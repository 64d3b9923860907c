from __future__ import annotations

import numpy as np
import pytest

from unpoison.core.result import Cost
from unpoison.defenses.base import Decision, check_epsilon, relative_suspicion
from unpoison.errors import InputError


def test_a_decision_counts_what_it_removes() -> None:
    decision = Decision(np.array([True, False, True, True]), np.zeros(4))
    assert decision.n_removed == 1
    assert decision.removed_fraction == 0.25
    assert decision.cost == Cost()
    assert decision.components is None


def test_suspicion_is_one_half_at_the_border_and_rises_with_the_score() -> None:
    scores = np.array([0.0, 0.5, 2.0, 7.0, np.inf, np.nan])
    suspicion = relative_suspicion(scores, border=2.0)
    assert suspicion[2] == 0.5
    assert suspicion[0] == 0.0
    assert (np.diff(suspicion[:5]) > 0).all()
    assert suspicion[4:].tolist() == [1.0, 1.0]


def test_suspicion_without_any_score_is_none() -> None:
    assert relative_suspicion(np.zeros(3), border=0.0).tolist() == [0.0, 0.0, 0.0]
    assert relative_suspicion(np.array([0.0, 1.0]), border=0.0).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("epsilon", [-0.1, 5, 0.5, "0.05", float("nan")])
def test_epsilon_is_a_share(epsilon: float) -> None:
    with pytest.raises(InputError, match="poisoned share of a class"):
        check_epsilon(epsilon, below=0.5)
