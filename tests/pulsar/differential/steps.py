"""The steps that a program is made of: the commands of one producer, two consumers and two transactions on one topic.

A step is one command, with what a client sends before it. Entries are told by the order in which they were sent, a
transaction by its letter. A step that refers to what is not there, as a consumer that is closed, does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.differential.machine import Step

KINDS = ("Exclusive", "Shared", "Failover", "Key_Shared")
IN_ORDER = ("Exclusive", "Failover")
PLENTY = 1000
"""Permits for all that a program sends."""
EARLIEST = -1
LATEST = -2


@dataclass(frozen=True, kw_only=True, repr=False)
class Send(Step):
    """SEND of one entry, a batch if it has several messages; its key is its number modulo 3."""

    count: int = 1
    transaction: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Subscribe(Step):
    """SUBSCRIBE, and permits, which are granted again when the consumer has been closed by the broker."""

    consumer: str
    subscription: str = "s"
    kind: str = "Exclusive"
    latest: bool = False
    permits: int = PLENTY


@dataclass(frozen=True, kw_only=True, repr=False)
class Flow(Step):
    """FLOW: so many messages more."""

    consumer: str
    permits: int


@dataclass(frozen=True, kw_only=True, repr=False)
class Read(Step):
    """SUBSCRIBE of a reader, whose subscription is not durable; it begins behind an entry, or at an end."""

    consumer: str
    after: int = EARLIEST


@dataclass(frozen=True, kw_only=True, repr=False)
class Close(Step):
    """CLOSE_CONSUMER."""

    consumer: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Unsubscribe(Step):
    """UNSUBSCRIBE."""

    consumer: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Acknowledging(Step):
    """ACK, without a request id if it is not `answered`; `index` is that of a message in the entry's batch."""

    consumer: str
    entry: int
    index: int | None = None
    transaction: str = ""
    answered: bool = True


@dataclass(frozen=True, kw_only=True, repr=False)
class Ack(Acknowledging):
    """ACK of one entry, or of one message of its batch."""


@dataclass(frozen=True, kw_only=True, repr=False)
class AckUpTo(Acknowledging):
    """ACK of everything up to an entry, or up to one message of its batch."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Redeliver(Step):
    """REDELIVER_UNACKNOWLEDGED_MESSAGES, of some entries (a negative acknowledgement) or of all."""

    consumer: str
    entries: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, repr=False)
class Seek(Step):
    """SEEK to an entry, to a message of its batch, or to an end."""

    consumer: str
    to: int
    index: int | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class SeekTime(Step):
    """SEEK to the time at which an entry was published, or some milliseconds beside it."""

    consumer: str
    entry: int
    plus_ms: int = 0


@dataclass(frozen=True, kw_only=True, repr=False)
class LastId(Step):
    """GET_LAST_MESSAGE_ID."""

    consumer: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Begin(Step):
    """NEW_TXN. A transaction of the same letter that was begun before is forgotten, and stays open."""

    transaction: str


@dataclass(frozen=True, kw_only=True, repr=False)
class BeginShort(Step):
    """NEW_TXN of a transaction that ends by its time-out, which `Expire` waits for."""

    transaction: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Expire(Step):
    """Wait until a transaction of `BeginShort` is over its time."""

    transaction: str


@dataclass(frozen=True, kw_only=True, repr=False)
class End(Step):
    """END_TXN."""

    transaction: str
    commit: bool


@dataclass(frozen=True, kw_only=True, repr=False)
class Reload(Step):
    """The broker restarts; of Apache Pulsar only the topic is unloaded and loaded again, which reads the same logs."""


STEPS: dict[str, type[Step]] = {
    kind.__name__: kind
    for kind in (
        *(Send, Subscribe, Flow, Read, Close, Unsubscribe, Ack, AckUpTo, Redeliver, Seek, SeekTime, LastId),
        *(Begin, BeginShort, Expire, End, Reload),
    )
}


def first_held_back(steps: Sequence[Step]) -> int:
    """Return the number of the first entry that an open transaction holds back."""
    entries: list[str] = []
    open_ones: dict[str, str] = {}
    for number, step in enumerate(steps):
        if isinstance(step, Begin | BeginShort):
            open_ones[step.transaction] = f"{step.transaction}{number}"
        elif isinstance(step, End | Expire):
            open_ones.pop(step.transaction, None)
        elif isinstance(step, Send):
            entries.append(open_ones.get(step.transaction, ""))
    held = [number for number, transaction in enumerate(entries) if transaction in open_ones.values()]
    return min(held, default=len(entries))


def as_data(step: Step) -> list[Any]:
    """Return a step as JSON has it: its name, and the fields that differ from their defaults."""
    return [type(step).__name__, step.given()]


def from_data(data: list[Any]) -> Step:
    """Return the step that was written by `as_data`."""
    name, given = data
    return STEPS[name](**{key: tuple(value) if isinstance(value, list) else value for key, value in given.items()})
