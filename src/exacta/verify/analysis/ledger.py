"""The tables that the checks look at, folded from a history in one pass.

This module owns what a transaction's fate is (`anomalies.py` has the terms), and which reader got what where. A value
is kept once, as a record; what was read is kept as pairs of offset and record number in arrays, 24 bytes each.

Lines of different processes may come in either order (a record may be read before its `Begin` is recorded), so nothing
is judged before all of them are here.
"""

# `array[int]` cannot be subscripted when a module is run (python 3.11).
from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TypeAlias

import msgspec
from msgspec import Struct

from exacta.verify.history import (
    Begin,
    CommitAsked,
    End,
    Fault,
    GroupOffsets,
    HistoryError,
    Init,
    Isolation,
    Op,
    Outcome,
    Poll,
    ReadTo,
    Run,
    Watermarks,
)

Place: TypeAlias = tuple[str, int]
"""A partition: its topic and number."""


class Fate(Enum):
    """The certain knowledge about a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class Transaction(Struct):
    """One transaction, as its client knows it."""

    name: str
    process: str
    producer: str
    transactional_id: str
    begin_us: int
    number: int
    """The place of the transaction in the order of its process."""
    records: list[int] = []
    sources: list[tuple[str, int, int]] = []
    read: set[int] = set()
    """Records that it polled while it was open."""
    asked_us: int | None = None
    end_us: int | None = None
    committing: bool = False
    outcome: Outcome | None = None
    fenced: bool = False
    """A successor had its transactional id before the commit was asked for."""

    @property
    def fate(self) -> Fate:
        """Return what is certain about the transaction."""
        if self.outcome is Outcome.OK:  # an abort that follows a refused commit, too: it cannot follow a done one
            return Fate.COMMITTED if self.committing else Fate.ABORTED
        return Fate.ABORTED if self.asked_us is None or self.fenced else Fate.UNKNOWN


class Record(Struct):
    """One value: where it was sent, and where it was said to lie."""

    value: str
    place: Place | None = None
    transaction: Transaction | None = None
    ordinal: int = -1
    delivered: int | None = None
    source: tuple[str, int, int] | None = None


class Reading(Struct):
    """The records that one reader got of one partition, in the order in which it got them."""

    process: str
    isolation: Isolation
    session: str | None
    final: bool
    place: Place
    offsets: array[int] = msgspec.field(default_factory=lambda: array("q"))
    records: array[int] = msgspec.field(default_factory=lambda: array("q"))
    end_us: array[int] = msgspec.field(default_factory=lambda: array("q"))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield offset and record number."""
        return zip(self.offsets, self.records, strict=True)


class Sample(Struct):
    """Last stable offset and high watermark of every partition."""

    start_us: int
    marks: dict[Place, tuple[int, int]]
    final: bool


class Ledger:
    """All tables of one history."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.records: list[Record] = []
        self.transactions: dict[str, Transaction] = {}
        self.inits: list[Init] = []
        self.samples: list[Sample] = []
        self.reached: dict[tuple[Isolation, Place], ReadTo] = {}
        self.group_offsets: dict[Place, int] | None = None
        self.faults: list[Fault] = []
        self.operations: dict[tuple[str, str], int] = {}
        """The number of operations, by kind and outcome."""
        self.errors: dict[str, Counter[str]] = {}
        """The errors that clients were told, by the workload."""
        self._numbers: dict[str, int] = {}
        self._readings: dict[tuple[str, Isolation, str | None, bool, Place], Reading] = {}

    @property
    def readings(self) -> Iterable[Reading]:
        """Everything that was read."""
        return self._readings.values()

    def live(self, isolation: Isolation) -> Iterator[Reading]:
        """Yield what was read while the clients ran."""
        return (each for each in self.readings if not each.final and each.isolation is isolation)

    def final(self, isolation: Isolation) -> dict[Place, Reading]:
        """Return what the final reads got: of several attempts, the one that said how far it came."""
        found = {}
        for each in self.readings:
            if each.final and each.isolation is isolation:
                read = self.reached.get((isolation, each.place))
                if read is None or read.process in ("", each.process):
                    found[each.place] = each
        return found

    def covers(self, isolation: Isolation, place: Place, offset: int | None) -> bool:
        """Say whether the final read of a partition must have come past an offset (None: anywhere in it)."""
        read = self.reached.get((isolation, place))
        return read is not None and (read.whole or (offset is not None and offset < read.next_offset))

    def number(self, value: str) -> int:
        """Return the number of a value's record."""
        found = self._numbers.setdefault(value, len(self.records))
        if found == len(self.records):
            self.records.append(Record(value))
        return found

    def count(self, kind: str, outcome: str, amount: int = 1) -> None:
        """Count operations."""
        self.operations[kind, outcome] = self.operations.get((kind, outcome), 0) + amount

    def note_error(self, process: str, error: str) -> None:
        """Count what a client was told."""
        if error:
            self.errors.setdefault(workload_of(process), Counter())[error] += 1

    def reading(self, op: Poll) -> Reading:
        """Return what this poll's reader got of its partition so far."""
        place = (op.topic, op.partition)
        key = (op.process, op.isolation, op.session, op.final, place)
        found = self._readings.get(key)
        if found is None:
            found = self._readings[key] = Reading(op.process, op.isolation, op.session, op.final, place)
        return found


def workload_of(process: str) -> str:
    """Return what the name of a process begins with."""
    return process.split("-")[0]


def fold(history: Iterable[Op]) -> Ledger:
    """Return the tables of a history; raises `HistoryError` where an operation contradicts those before it."""
    ledger = Ledger()
    for number, op in enumerate(history, 1):
        try:
            _add(ledger, op)
        except (KeyError, ValueError, IndexError) as error:
            raise HistoryError(f"operation {number} ({type(op).__name__}) does not fit those before it") from error
    if ledger.run is None:
        raise HistoryError("the history does not begin with what was run")
    _fence(ledger)
    for transaction in ledger.transactions.values():
        kind = "transaction committed" if transaction.committing else "transaction aborted"
        ledger.count(kind, (transaction.outcome or Outcome.UNKNOWN).value)
    return ledger


def _add(ledger: Ledger, op: Op) -> None:
    match op:
        case Run():
            ledger.run = op
        case Init():
            ledger.count("takeover of an id", op.outcome.value)
            ledger.inits.append(op)
            ledger.note_error(op.process, op.error)
        case Begin():
            _begin(ledger, op)
        case CommitAsked():
            ledger.transactions[op.transaction].asked_us = op.at_us
            ledger.transactions[op.transaction].committing = True
        case End():
            _end(ledger, op)
            ledger.note_error(op.process, op.error)
        case Poll():
            _poll(ledger, op)
        case Watermarks():
            marks = {(topic, partition): (lso, high) for topic, partition, lso, high in op.partitions}
            ledger.samples.append(Sample(op.start_us, marks, op.final))
            ledger.count("listing of offsets", Outcome.OK.value)
        case ReadTo():
            ledger.reached[op.isolation, (op.topic, op.partition)] = op
        case GroupOffsets():
            ledger.group_offsets = {(topic, partition): offset for topic, partition, offset in op.partitions}
        case Fault():
            ledger.faults.append(op)


def _begin(ledger: Ledger, op: Begin) -> None:
    transaction = Transaction(
        name=op.transaction,
        process=op.process,
        producer=op.producer,
        transactional_id=op.transactional_id,
        begin_us=op.at_us,
        number=len(ledger.transactions),
        sources=op.sources,
    )
    ledger.transactions[op.transaction] = transaction
    for ordinal, (topic, partition, value) in enumerate(op.records):
        number = ledger.number(value)
        record = ledger.records[number]
        record.place, record.transaction, record.ordinal = (topic, partition), transaction, ordinal
        if op.sources:
            record.source = op.sources[ordinal]
        transaction.records.append(number)


def _end(ledger: Ledger, op: End) -> None:
    transaction = ledger.transactions[op.transaction]
    transaction.end_us, transaction.committing, transaction.outcome = op.at_us, op.committing, op.outcome
    for number, offset in zip(transaction.records, op.offsets, strict=True):
        ledger.records[number].delivered = offset


def _poll(ledger: Ledger, op: Poll) -> None:
    ledger.count(f"poll, {op.isolation.value}{', final' if op.final else ''}", Outcome.OK.value)
    reading = ledger.reading(op)
    for offset, value in op.records:
        number = ledger.number(value)
        reading.offsets.append(offset)
        reading.records.append(number)
        reading.end_us.append(op.end_us)
        if op.transaction is not None:
            ledger.transactions[op.transaction].read.add(number)


def _fence(ledger: Ledger) -> None:
    """Find the transactions that asked for their commit after their transactional id had been taken over."""
    given: dict[str, list[Init]] = {}
    own: dict[str, Init] = {}
    for init in ledger.inits:
        if init.outcome is Outcome.OK:
            given.setdefault(init.transactional_id, []).append(init)
            own[init.producer] = init
    for transaction in ledger.transactions.values():
        first = own.get(transaction.producer)
        asked_us = transaction.asked_us
        if first is None or asked_us is None:
            continue
        transaction.fenced = any(
            other.producer != transaction.producer and other.start_us > first.end_us and other.end_us < asked_us
            for other in given.get(transaction.transactional_id, ())
        )
