"""Say on a terminal how far a command is that takes long. Nothing is shown where stderr is no terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

_STEPS_OF_A_BAR = 500
_COUNTED_AT_ONCE = 100
"""A bar moves, and a number grows, in steps: each change takes a lock."""


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show what the command does, and for how long already."""
    with _shown() as progress:
        progress.add_task(what, total=None)
        yield


@contextmanager
def counting(what: str) -> Iterator[Callable[[int], None]]:
    """Show how many things are done; yield the function that is told the number."""
    from rich.progress import TextColumn

    with _shown(TextColumn("{task.completed:,.0f}")) as progress:
        yield _in_steps(progress, what, None, _COUNTED_AT_ONCE)


@contextmanager
def measuring(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show which part of `total` is done; yield the function that is told how much is."""
    from rich.progress import BarColumn, TaskProgressColumn, TimeRemainingColumn

    with _shown(BarColumn(), TaskProgressColumn(), TimeRemainingColumn()) as progress:
        yield _in_steps(progress, what, total, total // _STEPS_OF_A_BAR)


def _in_steps(progress: "Progress", what: str, total: int | None, step: int) -> Callable[[int], None]:
    task = progress.add_task(what, total=total)
    next_at = 0

    def tell(done: int) -> None:
        nonlocal next_at
        if done >= next_at:
            next_at = done + step
            progress.update(task, completed=done)

    return tell


def _shown(*columns: "ProgressColumn") -> "Progress":
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
        redirect_stdout=sys.stdout.isatty(),  # else it would go to stderr, above the bar, and not into its file
    )
