"""Consume, transform, produce: each committed input has one committed output, up to the committed offset."""

from collections.abc import Iterator

from exacta.verify.analysis.anomalies import Anomaly, Kind
from exacta.verify.analysis.ledger import Fate, Ledger, Place, Record
from exacta.verify.history import Isolation


def offsets_and_data_apart(ledger: Ledger) -> Iterator[Anomaly]:
    """Find inputs that were transformed twice, or not at all, or without their offset."""
    if ledger.run is None or ledger.run.etl is None or ledger.group_offsets is None:
        return
    source_topic, output_topic, group = ledger.run.etl
    final = ledger.final(Isolation.COMMITTED)
    outputs: dict[tuple[str, int, int], list[Record]] = {}
    for place, reading in final.items():
        if place[0] == output_topic:
            for number in dict.fromkeys(reading.records):
                record = ledger.records[number]
                # An output that should not be there is an aborted read, whatever it was made from.
                aborted = record.transaction is not None and record.transaction.fate is Fate.ABORTED
                if record.source is not None and not aborted:
                    outputs.setdefault(record.source, []).append(record)
    for source, records in outputs.items():
        at = f"{source[0]}-{source[1]}@{source[2]}"
        if len(records) > 1:
            yield _about(f"{at} was transformed {len(records)} times: {records[0].value}, {records[1].value}", records)
        elif source[2] >= ledger.group_offsets.get((source[0], source[1]), 0):
            reached = ledger.group_offsets.get((source[0], source[1]), 0)
            yield _about(f"{records[0].value} is there, but group {group} has committed only up to {reached}", records)
    for place in final:
        if place[0] == source_topic and _whole(ledger, output_topic):
            yield from _without_output(ledger, place, outputs, group)


def _without_output(
    ledger: Ledger, place: Place, outputs: dict[tuple[str, int, int], list[Record]], group: str
) -> Iterator[Anomaly]:
    assert ledger.group_offsets is not None
    reached = ledger.group_offsets.get(place, 0)
    # One whose output was in a committed transaction is a lost write.
    lost = {
        source
        for transaction in ledger.transactions.values()
        if transaction.fate is Fate.COMMITTED
        for source in transaction.sources
    }
    for offset, number in ledger.final(Isolation.COMMITTED)[place]:
        source = (*place, offset)
        if offset < reached and source not in outputs and source not in lost:
            value = ledger.records[number].value
            yield _about(
                f"group {group} has committed {place[0]}-{place[1]} up to {reached}, but {value} at {offset} has no "
                "output",
                [ledger.records[number]],
            )


def _whole(ledger: Ledger, topic: str) -> bool:
    reads = [read for (isolation, place), read in ledger.reached.items() if place[0] == topic]
    return bool(reads) and all(read.whole for read in reads)


def _about(message: str, records: list[Record]) -> Anomaly:
    transactions = [record.transaction for record in records if record.transaction is not None]
    return Anomaly(
        kind=Kind.OFFSET_AND_DATA_APART,
        message=message,
        at_us=min((each.begin_us for each in transactions), default=0),
        transactions=tuple(dict.fromkeys(each.name for each in transactions)),
        partitions=tuple(dict.fromkeys(record.place for record in records if record.place is not None)),
        processes=tuple(dict.fromkeys(each.process for each in transactions)),
    )
