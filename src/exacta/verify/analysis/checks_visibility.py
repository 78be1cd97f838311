"""Check how partitions become visible: stable offsets only grow, nothing stays open, transactions show whole."""

from bisect import bisect_right
from collections.abc import Iterator

from exacta.verify.analysis.anomalies import Anomaly, Kind
from exacta.verify.analysis.ledger import Fate, Ledger, Place
from exacta.verify.history import Isolation


def moved_back(ledger: Ledger) -> Iterator[Anomaly]:
    """Find last stable offsets and high watermarks lower than before."""
    highest: dict[Place, tuple[int, int]] = {}
    for sample in ledger.samples:
        for place, marks in sample.marks.items():
            before = highest.get(place, marks)
            for name, old, new in zip(("last stable offset", "high watermark"), before, marks, strict=True):
                if new < old:
                    yield Anomaly(
                        kind=Kind.LSO_MOVED_BACK,
                        message=f"the {name} of {place[0]}-{place[1]} was {old}, and then {new}",
                        at_us=sample.start_us,
                        partitions=(place,),
                    )
            highest[place] = max(before[0], marks[0]), max(before[1], marks[1])


def hanging(ledger: Ledger) -> Iterator[Anomaly]:
    """Find partitions in which a transaction is open that nobody owns."""
    for sample in ledger.samples:
        if not sample.final:
            continue
        for place, (stable, high) in sample.marks.items():
            if stable < high:
                yield Anomaly(
                    kind=Kind.HANGING_TRANSACTION,
                    message=f"the last stable offset of {place[0]}-{place[1]} stays at {stable}, below {high}: a "
                    "transaction is open that no transactional id owns",
                    at_us=sample.start_us,
                    partitions=(place,),
                )


def partly_visible(ledger: Ledger) -> Iterator[Anomaly]:
    """Find transactions that a reader saw in one partition before they were visible in another."""
    seen_us: dict[str, int] = {}
    for reading in ledger.live(Isolation.COMMITTED):
        for (_, number), end_us in zip(reading, reading.end_us, strict=True):
            transaction = ledger.records[number].transaction
            if transaction is not None and len(transaction.records) > 1:
                seen_us[transaction.name] = min(end_us, seen_us.get(transaction.name, end_us))
    offsets = {number: offset for reading in ledger.final(Isolation.COMMITTED).values() for offset, number in reading}
    starts = [sample.start_us for sample in ledger.samples]
    for name, end_us in seen_us.items():
        index = bisect_right(starts, end_us)
        transaction = ledger.transactions[name]
        if index == len(starts) or transaction.fate is Fate.ABORTED:
            continue
        for number in transaction.records:
            record = ledger.records[number]
            if record.place is None or number not in offsets:
                continue
            stable, _ = ledger.samples[index].marks.get(record.place, (offsets[number] + 1, 0))
            if stable <= offsets[number]:
                yield Anomaly(
                    kind=Kind.PARTLY_VISIBLE,
                    message=f"{name} had been read in part when {record.place[0]}-{record.place[1]} was visible up to "
                    f"{stable}; its record there lies at {offsets[number]}",
                    at_us=end_us,
                    transactions=(name,),
                    partitions=(record.place,),
                    processes=(transaction.process,),
                )
                break
