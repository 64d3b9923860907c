from __future__ import annotations

from unpoison.report.evidence import explain


def test_known_numbers_are_explained() -> None:
    lines = explain({"sharpness": 0.43, "agreement": 0.02, "consensus": 0.95})
    assert [line.value for line in lines] == ["43.0%", "2.0%", "95.0%"]
    assert all(line.meaning and line.share is not None for line in lines)


def test_other_numbers_are_shown_as_they_are() -> None:
    lines = explain({"silhouette_score": 1.23456, "sharpness": 7.0, "odd\x1b" + "x" * 99: None})
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
