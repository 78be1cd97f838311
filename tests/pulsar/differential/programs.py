"""Programs by chance: mostly what clients do, on one subscription that one or two consumers share.

`program` makes the same program for the same seed. Each step is chosen by what the steps before it have left open, so
that few of them do nothing. What is shortened (`agree.py`) is not made anew: a step without what it refers to does
nothing, hence any step may be left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.differential.machine import Step
from tests.pulsar.differential.steps import (
    EARLIEST,
    KINDS,
    LATEST,
    PLENTY,
    Ack,
    AckUpTo,
    Begin,
    BeginShort,
    Close,
    End,
    Expire,
    Flow,
    LastId,
    Read,
    Redeliver,
    Reload,
    Seek,
    SeekTime,
    Send,
    Subscribe,
    Unsubscribe,
    first_held_back,
)

Program = tuple[Step, ...]

FEWEST, MOST = 6, 18
"""The number of steps that are left to chance."""
BATCH = 3
NONSENSE = 0.03
"""The share of steps that refer to what need not be there."""


def program(seed: int) -> Program:
    """Return the program of a seed."""
    chance = random.Random(seed)
    permits = (1, 2, 4)[seed // 4 % 3] if seed % 20 < len(KINDS) else PLENTY
    return _Maker(chance, KINDS[seed % len(KINDS)], permits).made(expires=seed % 10 == 9)


class _Maker:
    def __init__(self, chance: random.Random, kind: str, permits: int) -> None:
        self._chance = chance
        self._kind = kind
        self._permits = permits
        self._steps: list[Step] = []
        self._counts: list[int] = []
        """The numbers of messages of the entries that were sent."""
        self._consumers: dict[str, str] = {}
        """The subscriptions of the consumers that are open."""
        self._open: set[str] = set()
        self._ended: set[str] = set()
        self._choices: list[tuple[int, Callable[[], Step | None]]] = [
            (18, self._send),
            (7, self._begin),
            (11, self._end),
            (17, self._ack),
            (8, self._ack_up_to),
            (8, self._redeliver),
            (4, self._seek),
            (2, self._seek_time),
            (5, self._subscribe),
            (3, self._close),
            (1, self._unsubscribe),
            (1, self._read),
            (5, self._last_id),
            (2, Reload),
            (0 if permits == PLENTY else 25, self._flow),
        ]

    def made(self, *, expires: bool) -> Program:
        """Return a program; in one that `expires`, a transaction is over its time."""
        self._add(Subscribe(consumer="x", kind=self._kind, permits=self._permits))
        for _ in range(self._chance.randint(1, 3)):
            self._add(Send(count=self._count()))
        if expires:
            self._add(BeginShort(transaction="u"))
        number = self._chance.randint(FEWEST, MOST if not expires else FEWEST)
        weights = [weight for weight, _ in self._choices]
        while number:
            [(_, choice)] = self._chance.choices(self._choices, weights)
            step = choice()
            if step is not None:
                self._add(step)
                number -= 1
        if expires:
            self._add(Expire(transaction="u"))
            self._add(self._last_id() or Send())
        return tuple(self._steps)

    def _add(self, step: Step) -> None:
        self._steps.append(step)
        match step:
            case Send(count=count):
                self._counts.append(count)
            case Subscribe(consumer=name, subscription=subscription):
                self._consumers.setdefault(name, subscription)
            case Read(consumer=name):
                self._consumers.setdefault(name, "reader")
            case Close(consumer=name) | Unsubscribe(consumer=name):
                self._consumers.pop(name, None)
            case Begin(transaction=name) | BeginShort(transaction=name):
                self._open.add(name)
                self._ended.discard(name)
            case End(transaction=name):
                self._open.discard(name)
                self._ended.add(name)

    # --- what a step refers to ----------------------------------------------------------------------------------------

    def _consumer(self) -> str | None:
        if self._chance.random() < NONSENSE:
            return self._chance.choice("xy")
        return self._chance.choice(sorted(self._consumers)) if self._consumers else None

    def _count(self) -> int:
        # Pulsar guesses how many batches the permits of a consumer are enough for.
        return self._chance.choice((1, 1, BATCH)) if self._permits == PLENTY else 1

    def _entry(self) -> int:
        return self._chance.randrange(len(self._counts))

    def _visible_entry(self) -> int | None:
        """Return an entry that no transaction holds back, mostly."""
        if self._chance.random() < NONSENSE:
            return self._entry()
        end = first_held_back(self._steps)
        return self._chance.randrange(end) if end else None

    def _index(self, entry: int) -> int | None:
        count = self._counts[entry]
        return self._chance.choice((None, *range(count))) if count > 1 else None

    def _transaction(self, share: float) -> str:
        """Return an open transaction, or with a small chance one that has ended; in such a share of all cases."""
        known = self._ended if self._chance.random() < NONSENSE else self._open
        return self._chance.choice(sorted(known)) if known and self._chance.random() < share else ""

    # --- steps --------------------------------------------------------------------------------------------------------

    def _send(self) -> Step:
        return Send(count=self._count(), transaction=self._transaction(0.5))

    def _begin(self) -> Step | None:
        left = sorted({"t", "u"} - self._open)
        return Begin(transaction=self._chance.choice(left)) if left else None

    def _end(self) -> Step | None:
        known = self._ended if self._chance.random() < NONSENSE else self._open
        if not known:
            return None
        return End(transaction=self._chance.choice(sorted(known)), commit=self._chance.random() < 0.5)

    def _ack(self) -> Step | None:
        return self._acknowledge(Ack)

    def _ack_up_to(self) -> Step | None:
        return self._acknowledge(AckUpTo)

    def _acknowledge(self, kind: type[Ack | AckUpTo]) -> Step | None:
        consumer, entry = self._consumer(), self._visible_entry()
        if consumer is None or entry is None:
            return None
        # A real Pulsar goes on ending such a transaction for ever, once the reader is gone.
        transaction = "" if self._consumers.get(consumer) == "reader" else self._transaction(0.6)
        answered = bool(transaction) or self._chance.random() < 0.8
        index = self._index(entry)
        return kind(consumer=consumer, entry=entry, index=index, transaction=transaction, answered=answered)

    def _redeliver(self) -> Step | None:
        consumer = self._consumer()
        if consumer is None:
            return None
        number = self._chance.choice((0, 1, 1, 2))
        return Redeliver(consumer=consumer, entries=tuple(sorted({self._entry() for _ in range(number)})))

    def _seek(self) -> Step | None:
        consumer, to = self._consumer(), self._chance.choice((EARLIEST, LATEST, self._entry(), self._entry()))
        if consumer is None:
            return None
        return Seek(consumer=consumer, to=to, index=None if to < 0 else self._index(to))

    def _seek_time(self) -> Step | None:
        consumer = self._consumer()
        if consumer is None:
            return None
        return SeekTime(consumer=consumer, entry=self._entry(), plus_ms=self._chance.choice((0, 0, 1, -1)))

    def _subscribe(self) -> Step | None:
        left = sorted({"x", "y"} - self._consumers.keys())
        if not left:
            return None
        consumer, latest = self._chance.choice(left), self._chance.random() < 0.2
        chance = self._chance.random()
        if consumer == "y" and chance < 0.2:
            return Subscribe(consumer="y", subscription="r", kind=self._chance.choice(KINDS), latest=latest)
        kind = self._kind if chance < 0.95 else self._chance.choice(KINDS[:3])
        return Subscribe(consumer=consumer, kind=kind, latest=latest, permits=self._permits)

    def _flow(self) -> Step | None:
        consumer = self._consumer()
        return None if consumer is None else Flow(consumer=consumer, permits=self._chance.choice((1, 1, 2, 4)))

    def _close(self) -> Step | None:
        consumer = self._consumer()
        return None if consumer is None else Close(consumer=consumer)

    def _unsubscribe(self) -> Step | None:
        consumer = self._consumer()
        return None if consumer is None else Unsubscribe(consumer=consumer)

    def _read(self) -> Step | None:
        after = self._chance.choice((EARLIEST, LATEST, self._entry()))
        return None if "y" in self._consumers else Read(consumer="y", after=after)

    def _last_id(self) -> Step | None:
        consumer = self._consumer()
        return None if consumer is None else LastId(consumer=consumer)
