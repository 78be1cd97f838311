"""Lines on a terminal about what clients have named: a name may hold any character, and is shown on its line."""

from collections.abc import Sequence
from typing import IO, TypeAlias

import typer

_SHOWN_RUNS = 10
Runs: TypeAlias = Sequence[tuple[int, int]]


def one_line(text: str) -> str:
    """Return a text with every character escaped that a terminal would not print: ends of lines, control sequences."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def say(line: str, *, err: bool = False) -> None:
    """Print one line on stdout, or on stderr."""
    typer.echo(one_line(line), err=err)


def counted(number: int, noun: str) -> str:
    """Return this many of something, in words: `1 topic`, `2 topics`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def acknowledged_in_words(before: int | None, runs: Runs, run_count: int) -> str:
    """Return what a transaction has acknowledged: all messages before an offset, runs of them, both or nothing."""
    parts = [] if before is None else [f"all before {before}"]
    if run_count:
        parts.append(runs_in_words(runs, run_count))
    return ", ".join(parts)


def runs_in_words(runs: Runs, count: int) -> str:
    """Return the first runs of offsets, and how many more there are of `count`."""
    shown = [str(first) if first == last else f"{first}–{last}" for first, last in runs[:_SHOWN_RUNS]]
    more = [f"and {counted(count - len(shown), 'run')} more"] if count > len(shown) else []
    return ", ".join([*shown, *more])


class OnATerminal:
    """Bytes for a terminal, which shows them and obeys none of them: only lines end, and tabulators are tabulators."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def write(self, data: bytes) -> None:
        """Write bytes; what is no UTF-8, and every control sequence, is escaped."""
        text = data.decode(errors="backslashreplace")
        self._out.write("".join(each if each in "\n\t" else one_line(each) for each in text).encode())

    def flush(self) -> None:
        """Let what was written be seen."""
        self._out.flush()
