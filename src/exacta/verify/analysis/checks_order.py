"""Check where values lie: once, where they were said to be, in the order in which they were sent, and read in it."""

from collections.abc import Iterator

from exacta.verify.analysis.anomalies import Anomaly, Kind
from exacta.verify.analysis.ledger import Fate, Ledger, Place, Reading, Record, Transaction
from exacta.verify.history import Isolation


def duplicates(ledger: Ledger) -> Iterator[Anomaly]:
    """Find values that lie at two offsets of the partition that they were sent to."""
    first: dict[int, int] = {}
    told: set[int] = set()
    for reading in ledger.readings:
        for offset, number in reading:
            record = ledger.records[number]
            if record.place != reading.place or number in told:
                continue
            before = first.setdefault(number, offset)
            if before != offset:
                told.add(number)
                message = f"{record.value} lies at two offsets of {_name(reading.place)}: {before} and {offset}"
                yield _of(Kind.DUPLICATE, message, reading.place, [record], [reading])


def inconsistent_offsets(ledger: Ledger) -> Iterator[Anomaly]:
    """Find offsets at which different values were seen, and values that are not where the delivery report said."""
    held: dict[Place, dict[int, tuple[int, Reading]]] = {}
    told: set[tuple[Place, int]] = set()
    places: dict[int, int] = {}
    for reading in ledger.readings:
        seen = held.setdefault(reading.place, {})
        for offset, number in reading:
            places[number] = offset
            other, by = seen.setdefault(offset, (number, reading))
            if other != number and (reading.place, offset) not in told:
                told.add((reading.place, offset))
                records = [ledger.records[other], ledger.records[number]]
                message = (
                    f"at offset {offset} of {_name(reading.place)} {by.process} got {records[0].value}, "
                    f"{reading.process} {records[1].value}"
                )
                yield _of(Kind.INCONSISTENT_OFFSET, message, reading.place, records, [by, reading])
    for number, record in enumerate(ledger.records):
        if record.delivered is None or record.place is None:
            continue
        found = held.get(record.place, {}).get(record.delivered)
        at = places.get(number)
        if (record.place, record.delivered) in told:
            continue
        if found is not None and found[0] != number:
            what = f"{found[1].process} got {ledger.records[found[0]].value} there"
        elif found is None and at is not None:
            what = f"readers find it at {at}"
        else:
            continue
        message = f"{record.value} was delivered to offset {record.delivered} of {_name(record.place)}; {what}"
        yield _of(Kind.INCONSISTENT_OFFSET, message, record.place, [record], [])


def reordered(ledger: Ledger) -> Iterator[Anomaly]:
    """Find records that lie behind one that was sent later."""
    for place, reading in ledger.final(Isolation.UNCOMMITTED).items():
        last: dict[str, Record] = {}
        latest: tuple[int, Record] | None = None  # of those so far, the one whose transaction began last
        seen: set[int] = set()
        for _, number in sorted(reading):
            record = ledger.records[number]
            transaction = record.transaction
            if transaction is None or record.place != place or number in seen:
                continue
            seen.add(number)
            before = last.get(transaction.producer)
            if before is not None and _sent(before) > _sent(record):
                yield _behind(place, record, before, "which the same producer sent later")
            elif latest is not None and _was_over(transaction, latest[0]):
                yield _behind(place, record, latest[1], "whose transaction began when that one had ended")
            last[transaction.producer] = record
            if latest is None or transaction.begin_us > latest[0]:
                latest = (transaction.begin_us, record)
    yield from _outputs_reordered(ledger)


def _outputs_reordered(ledger: Ledger) -> Iterator[Anomaly]:
    for place, reading in ledger.final(Isolation.COMMITTED).items():
        last: dict[Place, Record] = {}
        seen: set[tuple[str, int, int]] = set()
        for _, number in sorted(reading):
            record = ledger.records[number]
            if record.source is None or record.source in seen:
                continue
            seen.add(record.source)
            topic, partition, offset = record.source
            before = last.get((topic, partition))
            if before is not None and before.source is not None and before.source[2] > offset:
                yield _behind(place, record, before, "which was made from a later input")
            else:
                last[topic, partition] = record


def nonmonotonic_polls(ledger: Ledger) -> Iterator[Anomaly]:
    """Find readers that got an offset again, or an earlier one."""
    for reading in ledger.readings:
        if reading.session is None:
            continue
        before = -1
        for offset, number in reading:
            if offset <= before:
                message = f"{reading.process} got offset {offset} of {_name(reading.place)} after {before}"
                yield _of(Kind.NONMONOTONIC_POLL, message, reading.place, [ledger.records[number]], [reading])
                break
            before = offset


def skipped(ledger: Ledger) -> Iterator[Anomaly]:
    """Find readers that passed over what the final read has."""
    final = {isolation: ledger.final(isolation) for isolation in Isolation}
    for reading in ledger.readings:
        whole = final[reading.isolation].get(reading.place)
        if reading.session is None or reading.final or whole is None or not reading.offsets:
            continue
        got, end = set(reading.offsets), max(reading.offsets)
        passed = [
            (offset, number)
            for offset, number in whole
            if offset < end and offset not in got and not _hidden(ledger, number, reading.isolation)
        ]
        if passed:
            offset, number = passed[0]
            record = ledger.records[number]
            message = (
                f"{reading.process} read {_name(reading.place)} up to offset {end} and passed over {len(passed)} "
                f"records, the first {record.value} at {offset}"
            )
            yield _of(Kind.SKIPPED, message, reading.place, [record], [reading])


def _hidden(ledger: Ledger, number: int, isolation: Isolation) -> bool:
    """Say whether a reader did well not to get a record that others got."""
    transaction = ledger.records[number].transaction
    committed_only = ledger.run is not None and ledger.run.shows_committed_only(isolation)
    return committed_only and transaction is not None and transaction.fate is Fate.ABORTED


def _sent(record: Record) -> tuple[int, int]:
    assert record.transaction is not None
    return record.transaction.number, record.ordinal


def _was_over(transaction: Transaction, begin_us: int) -> bool:
    # What an unknown one has in flight may be written later.
    return transaction.fate is Fate.COMMITTED and transaction.end_us is not None and transaction.end_us < begin_us


def _behind(place: Place, record: Record, before: Record, why: str) -> Anomaly:
    message = f"in {_name(place)} {record.value} lies behind {before.value}, {why}"
    return _of(Kind.REORDERED, message, place, [record, before], [])


def _of(kind: Kind, message: str, place: Place, records: list[Record], readings: list[Reading]) -> Anomaly:
    transactions = [record.transaction for record in records if record.transaction is not None]
    return Anomaly(
        kind=kind,
        message=message,
        at_us=min((each.begin_us for each in transactions), default=0),
        transactions=tuple(dict.fromkeys(each.name for each in transactions)),
        partitions=(place,),
        processes=tuple(
            dict.fromkeys([*(each.process for each in transactions), *(each.process for each in readings)])
        ),
    )


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"
