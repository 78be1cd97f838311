"""The history of a shared log, from outside: what was acknowledged, refused and shown; and what must not be.

Events are opaque to the log. Here each is a line of text that no other event has, and says where its batch lies.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence

from exacta.ports.journal import IndexEntry, JournalEntry

STREAMS = 3


class LogHistory:
    """Compare what all brokers of a world show and are told."""

    def __init__(self, complain: Callable[[str], None]) -> None:
        self.durable: list[bytes] = []
        """The events that some broker has shown or was told are durable, in the order of the log."""
        self.acknowledged = 0
        """The number of events at the beginning of `durable` that writers have been told of."""
        self.refused: set[bytes] = set()
        """The events of which their writer was told that they are not in the log."""
        self.floors = [0] * STREAMS
        """The offsets below which nobody reads a stream any more."""
        self._places: dict[bytes, int] = {}
        self._complain = complain

    def show(self, who: str, begin: int, events: Sequence[bytes]) -> None:
        """Hear that a broker takes these events for durable; `begin` is the number of those that it had before."""
        for number, event in enumerate(events, begin):
            if number < len(self.durable):
                if self.durable[number] != event:
                    self._complain(f"logs differ: {who} has {event!r} as event {number}, not {self.durable[number]!r}")
                    return
                continue
            if number > len(self.durable):
                self._complain(f"a gap: {who} has event {number}, and the log ends with {len(self.durable)}")
                return
            if event in self._places:
                self._complain(f"doubled: {event!r} is event {self._places[event]} and {number}")
            if event in self.refused:
                self._complain(f"refused and yet there: {event!r}")
            self._places[event] = number
            self.durable.append(event)

    def acknowledge(self, who: str, begin: int, events: Sequence[bytes]) -> None:
        """Hear that a writer was told that its events are durable."""
        self.show(who, begin, events)
        self.acknowledged = max(self.acknowledged, begin + len(events))

    def refuse(self, events: Sequence[bytes]) -> None:
        """Hear that a writer was told that its events are not in the log."""
        self.refused.update(events)
        there = [event for event in events if event in self._places]
        if there:
            self._complain(f"refused and yet there: {there[0]!r}")

    def reads(self, who: str, known: int, asked_at: int) -> None:
        """Hear that a broker may answer from what it knows, when this much was acknowledged before the question."""
        if known < asked_at:
            self._complain(f"stale read: {who} knows {known} events, and {asked_at} were acknowledged before")


def entry(name: str, stream: int, first_offset: int, size: int) -> JournalEntry:
    """Return an entry of one batch, whose event says all of it."""
    event = f"{name} {stream} {first_offset} {size}".encode()
    return JournalEntry(event, (batch(event),), (IndexEntry(stream, first_offset, first_offset, 0, 0, size, 1),))


def batch(event: bytes) -> bytes:
    """Return the bytes of an event's batch."""
    size = int(event.split()[3])
    piece = zlib.crc32(event).to_bytes(4, "big")
    return (piece * (size // 4 + 1))[:size]


def place(event: bytes) -> tuple[int, int]:
    """Return the stream and the offset of an event's batch."""
    _, stream, offset, _ = event.split()
    return int(stream), int(offset)


def fold(blob: bytes | None, events: Iterator[bytes]) -> bytes:
    """Return the snapshot after these events: all events, one a line."""
    return b"\n".join([*lines(blob), *events])


def lines(blob: bytes | None) -> list[bytes]:
    """Return the events of a snapshot."""
    return blob.split(b"\n") if blob else []
