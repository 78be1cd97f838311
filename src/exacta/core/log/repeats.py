"""The rule of repeats, for writers that number their messages themselves: named ones, and nameless ones.

Such a writer's sequences grow, with gaps. What a partition knows of it is the highest sequence that is stored. `TABLE`
is the rule, and what the code runs: what becomes of a batch, by its writer, by whether it is a part of a large message,
and by how much of it lies at or below the highest sequence.

A named writer is never told that a message is stored when it is not, so that a batch of which a part is stored is
refused: its client may send the messages one by one. All parts of a large message have one sequence, and only the last
one counts: until then the message is not stored, and all of its parts may come again.

The user of a nameless writer may give any sequences, in any order. So its batches are compared only when it has come
back over another connection, because only then can it send something again. What else it sends is new, wherever its
sequences lie, and nothing of it is refused.
"""

from collections.abc import Mapping
from enum import IntEnum, auto
from typing import Final

from msgspec import Struct

from exacta.core.events import WriterNamed, WritersExpired
from exacta.core.ids import NO_WRITER_ID, WriterId
from exacta.core.rejections import Rejection
from exacta.core.replies import ALREADY_STORED, AlreadyStored


class Kind(IntEnum):
    """The kind of a writer, as far as its repeats are concerned."""

    NAMED = auto()
    BACK = auto()
    """A nameless writer that had another connection before."""
    NEVER_AWAY = auto()
    """A nameless writer on its first connection."""


class Stored(IntEnum):
    """The messages of a batch that lie at or below the highest sequence that is stored."""

    ALL = auto()
    SOME = auto()
    NONE = auto()


class Verdict(IntEnum):
    """The answer to a batch, and what is remembered of it."""

    REPEAT = auto()
    """It is answered as stored, and not appended."""
    PARTLY_STORED = auto()
    """It is refused."""
    COUNTED = auto()
    """It is appended, and its last sequence is remembered."""
    UNCOUNTED = auto()
    """It is appended, and nothing of it is remembered."""


_REPEAT, _PARTLY_STORED, _COUNTED, _UNCOUNTED = Verdict

TABLE: Final[Mapping[tuple[Kind, bool], Mapping[Stored, Verdict]]] = {
    # a writer, and whether the batch is a part of a large message
    (Kind.NAMED, False): {Stored.ALL: _REPEAT, Stored.SOME: _PARTLY_STORED, Stored.NONE: _COUNTED},
    (Kind.NAMED, True): {Stored.ALL: _REPEAT, Stored.SOME: _PARTLY_STORED, Stored.NONE: _UNCOUNTED},
    (Kind.BACK, False): {Stored.ALL: _REPEAT, Stored.SOME: _COUNTED, Stored.NONE: _COUNTED},
    (Kind.BACK, True): {Stored.ALL: _REPEAT, Stored.SOME: _UNCOUNTED, Stored.NONE: _UNCOUNTED},
    (Kind.NEVER_AWAY, False): {Stored.ALL: _COUNTED, Stored.SOME: _COUNTED, Stored.NONE: _COUNTED},
    (Kind.NEVER_AWAY, True): {Stored.ALL: _UNCOUNTED, Stored.SOME: _UNCOUNTED, Stored.NONE: _UNCOUNTED},
}


class Known(Struct, frozen=True):
    """A writer whose batch is new: its number, the sequence to be remembered, and the events that must come first."""

    writer_id: WriterId
    sequence: int
    events: tuple[WriterNamed | WritersExpired, ...] = ()


UNCOUNTED = Known(NO_WRITER_ID, -1)
"""Nothing of the batch is remembered."""


def stored(highest: int | None, first_sequence: int, last_sequence: int) -> Stored:
    """Return how much of a batch is stored; `highest` is None before the writer's first batch."""
    if highest is None or first_sequence > highest:
        return Stored.NONE
    return Stored.ALL if last_sequence <= highest else Stored.SOME


def answer(
    kind: Kind, highest: int | None, first_sequence: int, last_sequence: int, *, is_part: bool
) -> AlreadyStored | Rejection | Known | None:
    """Return what the table makes of a batch. None: it is appended, and its last sequence is remembered."""
    match TABLE[kind, is_part][stored(highest, first_sequence, last_sequence)]:
        case Verdict.REPEAT:
            return ALREADY_STORED
        case Verdict.PARTLY_STORED:
            return Rejection.PARTLY_STORED
        case Verdict.UNCOUNTED:
            return UNCOUNTED
        case Verdict.COUNTED:
            return None
