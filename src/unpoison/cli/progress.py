"""Progress bars on stderr, drawn from the library's events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from unpoison.events import Listener, Progress, ignore


@contextmanager
def progress_bars(*, enabled: bool) -> Iterator[Listener]:
    """A listener that draws one bar a stage, with the time left; silent where stderr is no terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not enabled or not console.is_terminal:
        yield ignore
        return
    from rich import progress

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=console) as bars:
        tasks: dict[str, progress.TaskID] = {}

        def draw(event: Progress) -> None:
            if event.stage not in tasks:
                tasks[event.stage] = bars.add_task(event.stage, total=event.total)
            note = f" ({event.resumed} from before)" if event.resumed else ""
            bars.update(tasks[event.stage], completed=event.done, description=event.stage + note)

        yield draw
