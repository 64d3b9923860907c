"""What is refused is tested with ``unpoison apply``; here is what is understood."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from unpoison.errors import InputError
from unpoison.outputs import overrides
from unpoison.outputs.overrides import read_overrides


def test_ids_are_taken_as_they_are(tmp_path: Path) -> None:
    ids = ["a", "</script>", "\u2028\x00", "__proto__", ""]
    content = json.dumps({"unpoison_overrides": 1, "fingerprint": "f", "keep": ids, "remove": ["b", "b"]})
    (tmp_path / "o.json").write_text(content)
    found = read_overrides(tmp_path / "o.json")
    assert (found.fingerprint, found.keep, found.remove) == ("f", frozenset(ids), frozenset({"b"}))
    assert found.sha256 == hashlib.sha256(content.encode()).hexdigest()


def test_a_file_without_end_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overrides, "MAX_BYTES", 100)
    (tmp_path / "o.json").write_bytes(b" " * 101)
    with pytest.raises(InputError, match="more than the limit"):
        read_overrides(tmp_path / "o.json")
