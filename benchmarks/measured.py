"""Measurements as lines of JSON: printed and kept as they come, so that a second run goes on from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Measured:
    """The lines of a file, or of this run alone; ``key`` names the fields that tell them apart."""

    def __init__(self, path: Path | None, *, key: tuple[str, ...]) -> None:
        self.path, self.key = path, key
        kept = path.read_text().splitlines() if path is not None and path.exists() else []
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in kept]

    def has(self, *values: Any) -> bool:
        """Whether there is a line with these values of the key."""
        return any(values == tuple(line[name] for name in self.key) for line in self.lines)

    def add(self, line: dict[str, Any]) -> None:
        """Print a line and keep it."""
        self.lines.append(line)
        print(json.dumps(line), flush=True)
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps(line) + "\n")
