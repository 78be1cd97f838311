"""Show the demo: progress while it works, and the closing table.

This module owns all of the demo's output. It decides nothing. On something that is not a terminal the bars are left
out, and a line a minute says what they would. A file gets every line and the table, too, for who watches from afar.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from exacta.demo.verify import OutputVerdict

_PROGRESS_EVERY_S = 60.0
_FILE_WIDTH = 120


class Screen:
    """Show bars at the bottom, and above them, line by line, what happens."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(highlight=False)
        self._file: Console | None = None
        self._clock = clock
        self._started_at = self._told_at = clock()
        self._progress = Progress(
            TextColumn("{task.description:>28}"),
            BarColumn(bar_width=40),
            TextColumn("{task.completed:>9,.0f} / {task.total:,.0f}"),
            TextColumn("{task.fields[remark]}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._bars: dict[str, TaskID] = {}

    @contextmanager
    def copied_to(self, path: Path) -> Iterator[None]:
        """Write every line meanwhile to this file as well."""
        with path.open("a", buffering=1) as file:
            self._file = Console(file=file, width=_FILE_WIDTH, highlight=False)
            self.say(f"a line of progress each minute: {path}")
            try:
                yield
            finally:
                self._file = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, text: str, style: str = "") -> None:
        """Print one line above the bars."""
        # The style belongs to the text, not to the call, or it would colour the bars below as well.
        self._print(Text(text, style=style), soft_wrap=True)

    def bar(self, name: str, total: int) -> None:
        """Add a bar."""
        self._bars[name] = self._progress.add_task(name, total=total, remark="")

    def advance(self, name: str, count: int) -> None:
        """Move a bar on."""
        self._progress.advance(self._bars[name], count)
        self._tell_progress()

    def move(self, name: str, completed: int, remark: str) -> None:
        """Set a bar."""
        self._progress.update(self._bars[name], completed=completed, remark=remark)
        self._tell_progress()

    def _tell_progress(self) -> None:
        """Say each minute in one line what the bars show; a terminal shows the bars themselves."""
        now = self._clock()
        if now - self._told_at < _PROGRESS_EVERY_S:
            return
        self._told_at = now
        counts = [
            f"{task.description} {task.completed:,.0f} of {task.total:,.0f}{task.fields['remark'] and ' in '}"
            f"{task.fields['remark']}"
            for task in self._progress.tasks
        ]
        line = Text(f"{(now - self._started_at) / 60:.0f} min: {', '.join(counts)}")
        for console in (self._file, None if self._console.is_terminal else self._console):
            if console is not None:
                console.print(line, soft_wrap=True)

    def _print(self, shown: Text | Table, *, soft_wrap: bool = False) -> None:
        for console in (self._console, self._file):
            if console is not None:
                console.print(shown, soft_wrap=soft_wrap)

    def verdicts(self, verdicts: list[OutputVerdict]) -> None:
        """Print the closing table, and examples of what is wrong."""
        self.say("What confluent-kafka read (read_committed), against the same computation in pandas:")
        table = Table()
        table.add_column("")
        for verdict in verdicts:
            table.add_column(verdict.name, justify="right")
        rows: dict[str, list[int | None]] = {
            "rows expected": [v.expected for v in verdicts],
            "rows seen": [v.seen for v in verdicts],
            "lost": [v.lost for v in verdicts],
            "twice": [v.twice for v in verdicts],
            "wrong": [v.wrong for v in verdicts],
            "out of order within a key": [v.disordered for v in verdicts],
            "aborted rows seen": [v.aborted_seen for v in verdicts],
            "aborted rows in the log": [v.aborted_in_log for v in verdicts],
            "rows of transactions left open": [v.undecided_in_log for v in verdicts],
        }
        for name, numbers in rows.items():
            table.add_row(name, *("–" if number is None else f"{number:,}" for number in numbers))
        self._print(table)
        for verdict in verdicts:
            for example in verdict.examples:
                self.say(f"  {verdict.name}: {example}")

    def outcome(self, exactly_once: bool) -> None:
        """Print the last line of a demo that was judged."""
        self._print(
            Text(f"exactly once: {'yes' if exactly_once else 'no'}", f"bold {'green' if exactly_once else 'red'}")
        )

    def could_not_run(self, reason: str) -> None:
        """Print the last line of a demo that was not."""
        self.say(f"could not run: {reason}", "bold yellow")
