from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np

from unpoison.core.result import Group
from unpoison.outputs import record
from unpoison.report.shared import Shared
from unpoison.report.traits import Trait

from .builders import NASTY, RUN, make_dataset, make_result


def test_has_what_it_promises() -> None:
    dataset = make_dataset()
    facts = record.build(dataset, make_result(dataset), run=RUN)
    assert facts["format_version"] == 2
    assert facts["tool"]["name"] == "unpoison"
    assert set(facts["versions"]) == {"python", "numpy", "scikit-learn", "platform"}
    assert facts["settings"] == {"restarts": 2, "alpha": 0.25, "limits": [1, 2]}
    assert (facts["method"], facts["learner"], facts["seed"]) == ("self-paced", "logistic regression", 7)
    assert facts["data"]["fingerprint"] == dataset.fingerprint
    assert facts["data"]["classes"][0] == {"name": "cat", "samples": 14}
    assert facts["result"]["n_removed"] == 3
    assert facts["result"]["by_class"][0] == {
        **{"class": "cat", "samples": 14, "removed": 3, "most_called": "dog", "most_called_times": 3}
    }
    assert facts["result"]["by_class"][1]["most_called"] is None
    assert facts["result"]["groups"] == [
        {
            **{"label": "cat", "called": "dog", "size": 3, "removed": True, "undecided": False, "reason": ""},
            "evidence": {"agreement": 0.4, "odd": None},
        }
    ]
    assert facts["result"]["canaries"] == []
    assert facts["cost"] == {"trained": 100, "scored": 20, "seconds": 0.0, "flops": 0.0, "matmul_share": None}
    assert facts["timings"] == {"seconds": 12.346}
    assert facts["result"]["certainty"]["level"] == "mixed"
    assert facts["result"]["shared"] == [{"label": "cat", "removed": 3, "pattern": None, "traits": []}]
    assert facts["review"] is None


def test_what_the_removed_share() -> None:
    dataset = make_dataset()
    word = Shared(traits=(Trait(None, "cf", 1.0, 0.0), Trait(None, "film", 0.9, 0.3)))
    facts = record.build(dataset, make_result(dataset), run=RUN, shared={0: word})
    assert facts["result"]["verdict"].endswith("and share the word 'cf'.")
    assert facts["result"]["certainty"]["level"] == "clear"
    (found,) = facts["result"]["shared"]
    trait = {"column": None, "value": "cf", "removed": 1.0, "kept": 0.0, "is_range": False}
    assert found == {"label": "cat", "removed": 3, "pattern": None, "traits": [trait]}


def test_dump_is_ascii_without_control_characters() -> None:
    dataset = make_dataset(44, names=NASTY)
    data = record.dump(record.build(dataset, make_result(dataset), run=RUN))
    assert all(byte == 10 or 32 <= byte < 127 for byte in data)
    assert [row["name"] for row in json.loads(data)["data"]["classes"]] == list(NASTY)


def test_plain_takes_anything() -> None:
    value = {
        **{1: np.int64(3), "path": Path("a"), "nan": float("nan"), "flag": np.bool_(True)},
        **{"array": np.array([1.0, np.inf]), "set": {3, 1}, "kind": int, "facts": RUN},
    }
    found = record.plain(value)
    json.dumps(found, allow_nan=False)
    assert found["1"] == 3
    assert found["array"] == [1.0, None]
    assert found["set"] == [1, 3]
    assert found["flag"] is True
    assert found["facts"]["seed"] == 7


def test_our_own_planted_samples_stand_apart_from_the_data() -> None:
    dataset = make_dataset()
    plain_result = make_result(dataset)
    notes = {
        "rounds": 3,
        "canaries": [{"label": 1, "size": 9, "found": 9}, {"label": 2, "size": 8, "found": 0}],
    }
    facts = record.build(dataset, dataclasses.replace(plain_result, notes=notes), run=RUN)
    before = record.build(dataset, plain_result, run=RUN)
    assert facts["result"]["canaries"] == [
        {"label": "dog", "size": 9, "found": 9},
        {"label": "bird", "size": 8, "found": 0},
    ]
    assert facts["result"]["notes"] == {"rounds": 3}
    assert facts["result"]["certainty"]["measured"] == (
        "Of our own 9 and 8 planted samples, 9 and 0 were found."
    )
    assert facts["data"] == before["data"]
    for name in ("verdict", "n_removed", "removed_fraction", "by_class", "groups", "shared"):
        assert facts["result"][name] == before["result"][name]


def test_groups_have_their_reason() -> None:
    dataset = make_dataset()
    side = Group(2, 9, False, 0, {"met": 8.0}, undecided=True, reason="Undecided: it is near.")
    result = dataclasses.replace(make_result(dataset, ()), groups=(side,))
    (group,) = record.build(dataset, result, run=RUN)["result"]["groups"]
    assert (group["undecided"], group["reason"]) == (True, "Undecided: it is near.")
