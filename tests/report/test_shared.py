from __future__ import annotations

from unpoison.report.shared import Shared, listed
from unpoison.report.traits import Trait


def column(name: str, removed: float) -> Trait:
    return Trait(name, "9", removed, 0.0)


def test_in_words() -> None:
    assert str(Shared(pattern="in the middle")) == "share a pattern in the middle"
    assert str(Shared(traits=(Trait(None, "cf", 1.0, 0.0), Trait(None, "x", 1.0, 0.0)))) == (
        "share the word 'cf'"
    )
    columns = tuple(column(name, 1.0) for name in "abcd")
    assert str(Shared(traits=columns)) == "share a = '9', b = '9' and c = '9'"
    assert str(Shared(traits=(column("a", 1.0), column("b", 0.6)))) == "share a = '9'", "the other is weaker"
    assert Shared().named == ()


def test_lists() -> None:
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
