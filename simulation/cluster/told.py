"""The answers that clients of a world were given, whichever broker they asked, and what must not be told after them.

A question is never answered from before an answer that was given before the question was asked. So each of these
functions either notes an answer, or returns what the answer to a question must have at least.
"""

from collections import Counter
from collections.abc import Callable
from enum import Enum, auto

from msgspec import Struct, field

Place = tuple[str, int]


class Outcome(Enum):
    """The knowledge that a writer has of a transaction."""

    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()
    UNKNOWN = auto()


class Writing(Struct):
    """The records that are to be seen together or not at all."""

    name: str
    outcome: Outcome = Outcome.OPEN
    sent: dict[bytes, Place] = field(default_factory=dict)
    acknowledged: dict[bytes, int] = field(default_factory=dict)
    """The offset that the writer was told of a record; where it is provisional, -1."""


class Told:
    """All answers that clients have got."""

    def __init__(self, complain: Callable[[str], None]) -> None:
        self.writings: list[Writing] = []
        self.ends: Counter[Place] = Counter()
        """The offset behind the last acknowledged record that belongs to no transaction."""
        self.offsets: Counter[tuple[str, Place]] = Counter()
        """The last offset of each group, which only grows."""
        self.positions: Counter[tuple[str, Place]] = Counter()
        """The position up to which the messages of a subscription are acknowledged."""
        self.topics: set[str] = set()
        """The topics that are there, and that nobody has asked to delete."""
        self.deleted: set[str] = set()
        """The topics that are gone, and that nobody creates again."""
        self.answers = 0
        self._given: dict[tuple[str, object], str] = {}
        self._complain = complain

    def begin(self, name: str, outcome: Outcome = Outcome.OPEN) -> Writing:
        """Return what a writer is going to write, which is there once it says so."""
        self.writings.append(Writing(name, outcome))
        return self.writings[-1]

    def given(self, what: str, number: object, to: str) -> None:
        """Hear that something was given out that nobody else may get."""
        owner = self._given.setdefault((what, number), to)
        if owner != to:
            self._complain(f"given out twice: {what} {number} to {owner} and to {to}")

    def refused(self, who: str, what: object, why: object) -> None:
        """Hear of an answer that no broker may give."""
        self._complain(f"refused: {who}: {what}: {why}")

    def check_read(self, who: str, read: dict[Place, list[tuple[int, bytes]]]) -> None:
        """Compare what a reader of committed records has got of all partitions, in the end."""
        found: dict[bytes, tuple[Place, int]] = {}
        for place, records in read.items():
            for offset, value in records:
                if value in found:
                    self._complain(f"doubled: {who} reads {value!r} at {found[value]} and at {(place, offset)}")
                found[value] = place, offset
        for writing in self.writings:
            self._check_writing(who, writing, found)

    def _check_writing(self, who: str, writing: Writing, found: dict[bytes, tuple[Place, int]]) -> None:
        there = {value: found[value] for value in writing.sent if value in found}
        if writing.outcome in (Outcome.OPEN, Outcome.ABORTED) and there:
            self._complain(f"aborted read: {who} reads {there} of {writing.name}")
        if writing.outcome is Outcome.COMMITTED or there:
            for value in writing.acknowledged.keys() - there.keys():
                kind = "lost" if writing.outcome is Outcome.COMMITTED else "torn"
                self._complain(f"{kind}: {who} does not read {value!r} of {writing.name}")
        for value, (place, offset) in there.items():
            told = writing.acknowledged.get(value, -1)
            if place != writing.sent[value] or told not in (-1, offset):
                self._complain(f"elsewhere: {who} reads {value!r} at {place, offset}, and {told} was told")
