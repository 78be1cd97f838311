"""Write the file of a history line by line, from one process, and read it back one operation at a time.

This module owns the file and the errors about a broken one. A history that ends in the midst of a line was cut off, and
is refused like any other broken one: an analysis of a part could miss what the rest proves.
"""

import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from exacta.verify.history import FORMAT, HistoryError, Op, Run, decode, encode


class HistoryWriter:
    """Appends operations to a new file; for several threads."""

    def __init__(self, path: Path) -> None:
        """Make the file; raises `HistoryError`."""
        self.path = path
        try:
            self._file = path.open("xb")
        except OSError as error:
            raise HistoryError(f"{path} cannot be written: {error.strerror}") from error
        self._lock = threading.Lock()

    def write(self, op: Op) -> None:
        """Append one operation; raises `HistoryError`."""
        line = encode(op)
        try:
            with self._lock:
                self._file.write(line)
        except OSError as error:
            raise HistoryError(f"{self.path} cannot be written: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            with self._lock:
                self._file.close()
        except OSError as failure:
            raise HistoryError(f"{self.path} cannot be written: {failure.strerror}") from failure


def read_history(path: Path) -> Iterator[Op]:
    """Yield the operations of a file, the `Run` first; raises `HistoryError`."""
    try:
        with path.open("rb") as file:
            number = 0
            for number, line in enumerate(file, 1):
                yield _checked(path, number, line)
    except OSError as error:
        raise HistoryError(f"{path} cannot be read: {error.strerror}") from error
    if number == 0:
        raise HistoryError(f"{path} is empty")


def _checked(path: Path, number: int, line: bytes) -> Op:
    if not line.endswith(b"\n"):
        raise HistoryError(f"{path} is cut off in line {number}")
    try:
        op = decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HistoryError(f"{path}, line {number}, is no operation of a history: {error}") from error
    if isinstance(op, Run) is not (number == 1):
        raise HistoryError(f"{path} is no history: its first line, and only that, says what was run")
    if isinstance(op, Run) and op.format != FORMAT:
        raise HistoryError(f"{path} has format {op.format}; this version reads format {FORMAT}")
    return op
