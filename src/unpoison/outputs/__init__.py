"""What a run leaves behind: the manifest, the record of the run, the cleaned set and the report."""

from __future__ import annotations

from unpoison.outputs.bundle import write
from unpoison.outputs.place import WORK_FOLDER, is_complete, prepare
from unpoison.outputs.record import RunFacts
from unpoison.outputs.verdict import verdict
from unpoison.outputs.verify import verify

__all__ = ["write", "RunFacts", "prepare", "is_complete", "WORK_FOLDER", "verify", "verdict"]
