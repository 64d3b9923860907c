"""Progress bars on stderr, drawn from the library's events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from unpoison.events import Listener, Progress, ignore


@contextmanager
def progress_bars(*, enabled: bool, in_bytes: bool = False) -> Iterator[Listener]:
    """A listener that draws one bar a stage, with the time left; silent where stderr is no terminal.

    ``in_bytes`` says that the events count bytes.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if not enabled or not console.is_terminal:
        yield ignore
        return
    from rich import filesize, progress

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.DownloadColumn() if in_bytes else progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=console) as bars:
        tasks: dict[str, progress.TaskID] = {}

        def draw(event: Progress) -> None:
            if event.stage not in tasks:
                tasks[event.stage] = bars.add_task(event.stage, total=event.total)
            before = filesize.decimal(event.resumed) if in_bytes else str(event.resumed)
            note = f" ({before} from before)" if event.resumed else ""
            bars.update(
                tasks[event.stage], completed=event.done, total=event.total, description=event.stage + note
            )

        yield draw
