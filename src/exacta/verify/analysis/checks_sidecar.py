"""Check what only sidecar topics promise: a transaction lies whole in each partition, in the order of the commits.

Each final read of read_committed is walked once. A client knows the order of two commits if the one was acknowledged
before the other one was asked for. Records of aborted transactions are left to the check of fates.
"""

from collections.abc import Iterator

from exacta.verify.analysis.anomalies import Anomaly, Kind
from exacta.verify.analysis.ledger import Fate, Ledger, Place, Reading, Record, Transaction
from exacta.verify.history import Isolation


def not_contiguous(ledger: Ledger) -> Iterator[Anomaly]:
    """Find transactions between whose records another one's lie."""
    for place, reading in _final(ledger):
        last: Record | None = None
        left: dict[str, Record] = {}  # the record behind each transaction that the log has gone on from
        told: set[str] = set()
        for record, transaction in _in_order(ledger, place, reading):
            between = left.get(transaction.name)
            if between is not None and transaction.name not in told:
                told.add(transaction.name)
                message = f"in {place[0]}-{place[1]} {between.value} lies between {transaction.name} and {record.value}"
                yield _of(Kind.NOT_CONTIGUOUS, message, place, transaction, between)
            if last is not None and last.transaction is not None and last.transaction is not transaction:
                left.setdefault(last.transaction.name, record)
            last = record


def not_in_commit_order(ledger: Ledger) -> Iterator[Anomaly]:
    """Find transactions that lie behind one whose commit was asked for when theirs had been acknowledged."""
    for place, reading in _final(ledger):
        latest: tuple[int, Record] | None = None  # of those so far, the one whose commit was asked for last
        seen: set[str] = set()
        for record, transaction in _in_order(ledger, place, reading):
            if transaction.name in seen or transaction.asked_us is None:
                continue
            seen.add(transaction.name)
            if latest is not None and _was_over(transaction, latest[0]):
                message = (
                    f"in {place[0]}-{place[1]} {record.value} lies behind {latest[1].value}, and its commit had been "
                    "acknowledged when that one's was asked for"
                )
                yield _of(Kind.NOT_IN_COMMIT_ORDER, message, place, transaction, latest[1])
            if latest is None or transaction.asked_us > latest[0]:
                latest = (transaction.asked_us, record)


def _final(ledger: Ledger) -> Iterator[tuple[Place, Reading]]:
    if ledger.run is not None and ledger.run.sidecar:
        yield from ledger.final(Isolation.COMMITTED).items()


def _in_order(ledger: Ledger, place: Place, reading: Reading) -> Iterator[tuple[Record, Transaction]]:
    for _, number in sorted(reading):
        record = ledger.records[number]
        transaction = record.transaction
        if transaction is not None and record.place == place and transaction.fate is not Fate.ABORTED:
            yield record, transaction


def _was_over(transaction: Transaction, asked_us: int) -> bool:
    return transaction.fate is Fate.COMMITTED and transaction.end_us is not None and transaction.end_us < asked_us


def _of(kind: Kind, message: str, place: Place, transaction: Transaction, other: Record) -> Anomaly:
    assert other.transaction is not None
    both = transaction, other.transaction
    return Anomaly(
        kind=kind,
        message=message,
        at_us=min(each.begin_us for each in both),
        transactions=tuple(dict.fromkeys(each.name for each in both)),
        partitions=(place,),
        processes=tuple(dict.fromkeys(each.process for each in both)),
    )
