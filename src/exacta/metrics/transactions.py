"""The metrics of transactions: the open ones by topic, what they hold back, and how transactions have ended."""

import asyncio
from collections import defaultdict
from functools import partial

from msgspec import Struct, field

from exacta.core.ids import Cause, PartitionId
from exacta.core.queries.open_transactions import OpenSince, open_since, open_transaction_ids
from exacta.metrics import families
from exacta.metrics.measured import Labels, Measured, labelled, largest, single
from exacta.ports.log import FENCING, Log

AT_ONCE = 200
"""This many transactions are looked at in one turn of the loop."""

LATE_BUFFER_MS = 300_000
"""Kafka calls a transaction late that is open for so much longer than any transaction may be (KIP-890's metric)."""


class _Open(Struct):
    """The open transactions, as they are being looked at."""

    now_ms: int
    late_ms: int
    counts: defaultdict[Labels, float] = field(default_factory=lambda: defaultdict(float))
    oldest: defaultdict[Labels, float] = field(default_factory=lambda: defaultdict(float))
    partitions: dict[PartitionId, tuple[str, int]] = field(default_factory=dict)
    """The topic of each partition that was written to, and how many offsets are held back in it."""
    late: set[PartitionId] = field(default_factory=set)
    oldest_ms: int = 0

    def add(self, transaction: OpenSince) -> None:
        """Take one transaction in."""
        age_ms = max(0, self.now_ms - transaction.start_ms)
        self.oldest_ms = max(self.oldest_ms, age_ms)
        for each in transaction.held_back:
            self.partitions[each.partition_id] = each.topic, each.offsets
            if age_ms > self.late_ms:
                self.late.add(each.partition_id)
        for topic in transaction.topics:
            self.counts[topic,] += 1
            self.oldest[topic,] = max(self.oldest[topic,], age_ms / 1000)


async def measure(engine: Log, most_timeout_ms: int, most: int) -> list[Measured]:
    """Return the metrics; `most` is the bound on series."""
    look = engine.advice.look
    ids = look(open_transaction_ids)
    found = _Open(engine.now_ms(), most_timeout_ms + LATE_BUFFER_MS)
    for begin in range(0, len(ids), AT_ONCE):
        for each in look(partial(open_since, ids=ids[begin : begin + AT_ONCE])):
            found.add(each)
        await asyncio.sleep(0)
    held_back: defaultdict[Labels, float] = defaultdict(float)
    for topic, behind in found.partitions.values():
        held_back[topic,] += behind
    counts = engine.counts
    ended: dict[Labels, float] = {
        ("committed" if committed else "aborted", cause.name.lower()): number
        for (committed, cause), number in {**_NONE_ENDED, **counts.ended}.items()
    }
    return [
        single(families.TRANSACTIONS_OPEN, len(ids)),
        single(families.TRANSACTIONS_OLDEST, found.oldest_ms / 1000),
        Measured(families.TRANSACTIONS_ENDED, ended),
        largest(families.TOPIC_TRANSACTIONS_OPEN, found.counts, most),
        largest(families.TOPIC_TRANSACTIONS_OLDEST, found.oldest, most, max),
        largest(families.TOPIC_HELD_BACK, held_back, most),
        single(families.LATE, len(found.late)),
        labelled(families.FENCED, ((cause.name.lower(), counts.fenced.get(cause, 0)) for cause in sorted(FENCING))),
    ]


_NOT_ASKED_FOR = (Cause.NEW_INSTANCE, Cause.TIME_OUT, Cause.MARKER, Cause.LOSS)

_NONE_ENDED = {
    (True, Cause.OWNER): 0,
    **{(False, cause): 0 for cause in (Cause.OWNER, Cause.IDLE, *_NOT_ASKED_FOR)},
}
"""A series that begins with its first transaction would hide that one from a rate."""
