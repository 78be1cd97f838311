"""Choices that a string of bytes makes: the same string makes the same ones, and a changed byte changes one of them.

So random strings and strings that a coverage-guided fuzzer has bred lead to attackers of the same kinds.
"""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Reads choices from bytes; when these are used up, each choice is the first one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def are_left(self) -> bool:
        """Return whether there is a choice left."""
        return self._position < len(self._data)

    def bytes(self, size: int) -> bytes:
        """Return the next bytes, fewer at the end."""
        found = self._data[self._position : self._position + size]
        self._position += size
        return found

    def below(self, bound: int) -> int:
        """Return a number from 0 to below `bound`, which is at most 65,536."""
        size = 1 if bound <= 256 else 2
        return int.from_bytes(self.bytes(size), "little") % bound

    def pick(self, among: Sequence[T]) -> T:
        """Return one of them."""
        return among[self.below(len(among))]

    def once_in(self, number: int) -> bool:
        """Return True once in this number of cases, and never when the bytes are used up."""
        return self.below(number) == number - 1
