"""The wire between one broker and the database: messages take time, wait out a cut, or are lost.

A message that is sent into a cut arrives once the cut is mended, as TCP repeats what was not acknowledged. A message
that is lost never arrives: its connection breaks, and the broker is told. Messages may overtake one another: each call
has a connection of its own here, which is the worst that a real ledger could make of it. A wire belongs to no process:
what a killed process has sent arrives.
"""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from exacta.ports.scheduler import Scheduler

KEEPALIVE_SECONDS = 4.0
"""A connection whose other end says nothing for so long is taken for lost."""
Message: TypeAlias = Callable[[], object]


def at_once() -> float:
    """Take no time."""
    return 0.0


def after(scheduler: Scheduler, seconds: float, call: Message) -> None:
    """Call after this number of seconds; in the order of asking if there is no time between."""
    if seconds > 0:
        scheduler.call_later(seconds, call)
    else:
        scheduler.call_soon(call)


class Direction(Struct, eq=False):
    """One direction of a wire."""

    scheduler: Scheduler
    seconds: Callable[[], float] = at_once
    """The time that the next message takes is asked of it."""
    to_lose: int = 0
    """The number of the next messages that are lost."""
    held: list[tuple[Message, Message]] | None = None
    """The messages that wait for the end of a cut, and what tells of their loss; None: there is no cut."""

    def carry(self, deliver: Message, lost: Message = lambda: None) -> None:
        """Deliver a message later, or tell the broker that it was lost."""
        if self.to_lose:
            self.to_lose -= 1
            after(self.scheduler, self.seconds(), lost)
        elif self.held is not None:
            self.held.append((deliver, lost))
        else:
            after(self.scheduler, self.seconds(), deliver)


class DatabaseWire:
    """Both directions between one broker and the database."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.requests = Direction(scheduler)
        self.replies = Direction(scheduler)
        self.on_lost: list[Message] = []
        """The calls by which connections are lost when a cut lasts too long."""
        self._scheduler = scheduler
        self._changes = 0

    @property
    def is_cut(self) -> bool:
        """True if one of the directions is cut, so that neither end is told that the other one lives."""
        return self.requests.held is not None or self.replies.held is not None

    def cut(self, *, requests: bool = True, replies: bool = True) -> None:
        """Let nothing arrive in these directions that is sent from now on."""
        for way, is_cut in ((self.requests, requests), (self.replies, replies)):
            if is_cut and way.held is None:
                way.held = []
        self._changes += 1
        self._scheduler.call_later(KEEPALIVE_SECONDS, self._lose_connections, self._changes)

    def mend(self) -> None:
        """Let everything arrive again, what was sent meanwhile included."""
        self._changes += 1
        for way in (self.requests, self.replies):
            held, way.held = way.held or [], None
            for deliver, lost in held:
                way.carry(deliver, lost)

    def _lose_connections(self, changes: int) -> None:
        if self.is_cut and changes == self._changes:
            for lose in list(self.on_lost):
                lose()
