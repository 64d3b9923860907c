from __future__ import annotations

from unpoison.report.evidence import explain, is_compared


def test_known_numbers_are_explained() -> None:
    lines = explain({"agreement": 0.02, "elsewhere": 0.95})
    assert [line.value for line in lines] == ["2.0%", "95.0%"]
    assert all(line.meaning and line.share is not None for line in lines)


def test_other_numbers_are_shown_as_they_are() -> None:
    lines = explain({"silhouette_score": 1.23456, "agreement": 7.0, "odd\x1b" + "x" * 99: None})
    assert [line.value for line in lines] == ["1.235", "7", "not known"]
    assert lines[0].name == "silhouette score"
    assert all(line.name.isprintable() and len(line.name) <= 40 and line.share is None for line in lines)


def test_a_distance_is_shown_with_its_error_and_what_it_means() -> None:
    lines = explain({"met": 13.24, "met_error": 0.512, "kept": -0.02, "kept_error": 0.01, "odd_error": 2.0})
    assert [(line.name, line.value, line.share) for line in lines] == [
        ("met", "13.2 ± 0.51", None), ("kept", "-0.02 ± 0.01", None), ("odd error", "2", None)
    ]  # fmt: skip
    assert "standard deviations" in lines[0].meaning
    assert "dissolves" in lines[1].meaning


def test_what_was_compared_with_nothing_has_no_number() -> None:
    from unpoison.core.groups.separation import NOT_MEASURED

    numbers = {"met": 8.0, "met_error": 0.5, "unmet": 0.0, "unmet_error": NOT_MEASURED}
    lines = explain({**numbers, "kept": 0.0, "kept_error": 12.4, "agreement": 0.5})
    assert [line.value for line in lines] == ["8 ± 0.5", "not measured", "not measured", "50.0%"]
    assert [is_compared(each) for each in ({}, {"unmet_error": None}, numbers)] == [True, True, False]
