"""Show the demo: progress while it works, and the closing table.

This module owns all of the demo's output. It decides nothing. On something that is not a terminal the bars are left out
and the lines stay.
"""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from exacta.demo.verify import OutputVerdict


class Screen:
    """Show bars at the bottom, and above them, line by line, what happens."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
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
        self._console.print(Text(text, style=style), soft_wrap=True)

    def bar(self, name: str, total: int) -> None:
        """Add a bar."""
        self._bars[name] = self._progress.add_task(name, total=total, remark="")

    def advance(self, name: str, count: int) -> None:
        """Move a bar on."""
        self._progress.advance(self._bars[name], count)

    def move(self, name: str, completed: int, remark: str) -> None:
        """Set a bar."""
        self._progress.update(self._bars[name], completed=completed, remark=remark)

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
        self._console.print(table)
        for verdict in verdicts:
            for example in verdict.examples:
                self.say(f"  {verdict.name}: {example}")

    def outcome(self, exactly_once: bool) -> None:
        """Print the last line."""
        style = "bold green" if exactly_once else "bold red"
        self._console.print(f"exactly once: {'yes' if exactly_once else 'no'}", style=style)
