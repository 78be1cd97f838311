"""Hold what became of transactions against what readers got: lost, aborted, dirty, torn, zombies', nobody's."""

from collections.abc import Iterator

from exacta.verify.analysis.anomalies import Anomaly, Kind
from exacta.verify.analysis.ledger import Fate, Ledger, Place, Reading, Record, Transaction
from exacta.verify.history import Isolation, Outcome, Run

_EXAMPLES = 3


def lost_writes(ledger: Ledger) -> Iterator[Anomaly]:
    """Find records of committed transactions that a final read lacks, and records that were seen and are gone."""
    shown = {isolation: _shown(ledger, isolation) for isolation in _views(ledger)}
    for transaction in ledger.transactions.values():
        if transaction.fate is not Fate.COMMITTED:
            continue
        for isolation in shown:
            missing = [
                record
                for number, record in _records(ledger, transaction)
                if number not in shown[isolation] and _due(ledger, isolation, record)
            ]
            if missing:
                yield _about(
                    Kind.LOST_WRITE,
                    transaction,
                    missing,
                    f"{transaction.name} was committed, but a {isolation.value} reader finds {len(missing)} of its "
                    f"{len(transaction.records)} records no more: {_named(missing)}",
                )
                break
    for isolation in shown:
        if isolation.is_committed:
            yield from _seen_and_gone(ledger, isolation, shown[isolation])


def _seen_and_gone(ledger: Ledger, isolation: Isolation, shown: set[int]) -> Iterator[Anomaly]:
    told: set[str] = set()
    for reading in ledger.live(isolation):
        for offset, number in reading:
            record = ledger.records[number]
            transaction = record.transaction
            if number in shown or transaction is None or transaction.fate is not Fate.UNKNOWN:
                continue  # of a committed one it is lost, of an aborted one it should not have been seen
            if transaction.name not in told and ledger.covers(isolation, reading.place, offset):
                told.add(transaction.name)
                yield _about(
                    Kind.LOST_WRITE,
                    transaction,
                    [record],
                    f"{reading.process} got {record.value} at {_at(reading.place, offset)}, and it is there no more",
                    reading,
                )


def aborted_reads(ledger: Ledger) -> Iterator[Anomaly]:
    """Find records of aborted transactions that a read_committed reader got."""
    for reading, offset, record, transaction, _ in _first_committed_reads(ledger):
        if transaction.fate is Fate.ABORTED:
            why = _why_aborted(transaction)
            yield _about(
                Kind.ABORTED_READ,
                transaction,
                [record],
                f"{reading.process} got {record.value} at {_at(reading.place, offset)}, which was aborted: {why}",
                reading,
            )


def dirty_reads(ledger: Ledger) -> Iterator[Anomaly]:
    """Find records that a read_committed reader got before their commit was asked for."""
    for reading, offset, record, transaction, end_us in _first_committed_reads(ledger):
        asked_us = transaction.asked_us
        if transaction.fate is not Fate.ABORTED and asked_us is not None and end_us < asked_us:
            yield _about(
                Kind.DIRTY_READ,
                transaction,
                [record],
                f"{reading.process} got {record.value} at {_at(reading.place, offset)}, {(asked_us - end_us) / 1000:g} "
                "ms before its commit was asked for",
                reading,
            )


def torn_transactions(ledger: Ledger) -> Iterator[Anomaly]:
    """Find transactions of unknown outcome of which a part is there at the end."""
    for isolation in _views(ledger):
        if _run(ledger).shows_committed_only(isolation):
            yield from _torn(ledger, isolation)


def _torn(ledger: Ledger, isolation: Isolation) -> Iterator[Anomaly]:
    shown = _shown(ledger, isolation)
    for transaction in ledger.transactions.values():
        if transaction.fate is not Fate.UNKNOWN:
            continue
        there = [record for number, record in _records(ledger, transaction) if number in shown]
        missing = [
            record
            for number, record in _records(ledger, transaction)
            if number not in shown and _due(ledger, isolation, record)
        ]
        if there and missing:
            yield _about(
                Kind.TORN_TRANSACTION,
                transaction,
                [*there, *missing],
                f"of {transaction.name} {_named(there)} can be read at the end, but not {_named(missing)}",
            )


def protocols_apart(ledger: Ledger) -> Iterator[Anomaly]:
    """Find transactions of unknown outcome that are there for the readers of one protocol only."""
    if Isolation.PULSAR not in _views(ledger):
        return
    by_kafka, by_pulsar = _shown(ledger, Isolation.COMMITTED), _shown(ledger, Isolation.PULSAR)
    for transaction in ledger.transactions.values():
        if transaction.fate is not Fate.UNKNOWN:
            continue
        apart = [
            record
            for number, record in _records(ledger, transaction)
            if (number in by_kafka) is not (number in by_pulsar)
            and all(_due(ledger, isolation, record) for isolation in (Isolation.COMMITTED, Isolation.PULSAR))
        ]
        if apart:
            yield _about(
                Kind.PROTOCOLS_APART,
                transaction,
                apart,
                f"of {transaction.name} the readers of one protocol get {_named(apart)}, and those of the other do not",
            )


def zombie_commits(ledger: Ledger) -> Iterator[Anomaly]:
    """Find acknowledged commits of producers that had a successor by then."""
    for transaction in ledger.transactions.values():
        if transaction.fenced and transaction.fate is Fate.COMMITTED:
            yield _about(
                Kind.ZOMBIE_COMMIT,
                transaction,
                [],
                f"{transaction.name} was committed by {transaction.producer}, whose transactional id "
                f"{transaction.transactional_id} had been taken over before",
            )


def unexpected_values(ledger: Ledger) -> Iterator[Anomaly]:
    """Find what nobody sent there."""
    told: set[int] = set()
    for reading in ledger.readings:
        for offset, number in reading:
            record = ledger.records[number]
            if record.place != reading.place and number not in told:
                told.add(number)
                sent = "nobody sent" if record.place is None else f"was sent to {record.place[0]}-{record.place[1]}"
                yield Anomaly(
                    kind=Kind.UNEXPECTED_VALUE,
                    message=f"{reading.process} got {record.value!r} at {_at(reading.place, offset)}, which {sent}",
                    at_us=reading.end_us[0],
                    partitions=(reading.place,),
                    processes=(reading.process,),
                )


def _first_committed_reads(ledger: Ledger) -> Iterator[tuple[Reading, int, Record, Transaction, int]]:
    """Yield the first record of each transaction that each read_committed reader got of each partition."""
    for reading in ledger.readings:
        if not _run(ledger).shows_committed_only(reading.isolation):
            continue
        told: set[str] = set()
        for (offset, number), end_us in zip(reading, reading.end_us, strict=True):
            record = ledger.records[number]
            transaction = record.transaction
            if transaction is not None and transaction.name not in told:
                told.add(transaction.name)
                yield reading, offset, record, transaction, end_us


def _run(ledger: Ledger) -> Run:
    assert ledger.run is not None
    return ledger.run


def _views(ledger: Ledger) -> list[Isolation]:
    return _run(ledger).views


def _why_aborted(transaction: Transaction) -> str:
    if transaction.outcome is Outcome.OK:
        return "its abort was acknowledged"
    return "its transactional id had been taken over" if transaction.fenced else "its commit was never asked for"


def _shown(ledger: Ledger, isolation: Isolation) -> set[int]:
    return {number for reading in ledger.final(isolation).values() for number in reading.records}


def _records(ledger: Ledger, transaction: Transaction) -> list[tuple[int, Record]]:
    return [(number, ledger.records[number]) for number in transaction.records]


def _due(ledger: Ledger, isolation: Isolation, record: Record) -> bool:
    """Say whether the final read must have shown a record, if it is there."""
    return record.place is not None and ledger.covers(isolation, record.place, record.delivered)


def _about(
    kind: Kind, transaction: Transaction, records: list[Record], message: str, reading: Reading | None = None
) -> Anomaly:
    return Anomaly(
        kind=kind,
        message=message,
        at_us=transaction.begin_us,
        transactions=(transaction.name,),
        partitions=tuple(dict.fromkeys(record.place for record in records if record.place is not None)),
        processes=(transaction.process, *([reading.process] if reading else [])),
    )


def _named(records: list[Record]) -> str:
    more = f" and {len(records) - _EXAMPLES} more" if len(records) > _EXAMPLES else ""
    return ", ".join(_where(record) for record in records[:_EXAMPLES]) + more


def _where(record: Record) -> str:
    assert record.place is not None
    at = f"{record.place[0]}-{record.place[1]}" if record.delivered is None else _at(record.place, record.delivered)
    return f"{record.value} ({at})"


def _at(place: Place, offset: int) -> str:
    return f"{place[0]}-{place[1]}@{offset}"
