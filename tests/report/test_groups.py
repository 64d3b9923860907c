from __future__ import annotations

import numpy as np

from unpoison.report.groups import suspect_groups

from .builders import judged
from .test_page import texts


def test_one_group_a_label_largest_first() -> None:
    dataset = texts()
    result = judged(dataset, [0, 3, 6, 9, 1, 4], called=2)
    groups = suspect_groups(dataset.labels, result)
    assert [(g.label, g.called, g.members.tolist()) for g in groups] == [(0, 2, [0, 3, 6, 9]), (1, 2, [1, 4])]
    assert [g.disputed for g in groups] == [True, True]
    assert len(suspect_groups(dataset.labels, result, limit=1)) == 1


def test_what_most_are_called_leads_and_the_rest_is_left_out() -> None:
    dataset = texts()
    result = judged(dataset, range(0, 30, 3))
    result.predicted[0:30:3] = [1, 1, 1, 1, 1, 1, 2, 2, 0, -1]
    (group,) = suspect_groups(dataset.labels, result)
    assert (group.called, group.members.tolist()) == (1, [0, 3, 6, 9, 12, 15])


def test_without_a_leader_all_are_one_group() -> None:
    dataset = texts()
    result = judged(dataset, range(0, 30, 3))
    result.predicted[0:30:3] = [1, 1, 1, 2, 2, 2, 0, 0, -1, -1]
    (group,) = suspect_groups(dataset.labels, result)
    assert (group.called, len(group.members)) == (-1, 10)


def test_one_sample_or_none_is_no_group() -> None:
    dataset = texts()
    assert suspect_groups(dataset.labels, judged(dataset, [0])) == []
    assert suspect_groups(dataset.labels, judged(dataset, [])) == []
    lone = judged(dataset, [0, 3])
    lone.predicted[[0, 3]] = -1
    (group,) = suspect_groups(dataset.labels, lone)
    assert (group.called, np.sort(group.members).tolist()) == (-1, [0, 3])
