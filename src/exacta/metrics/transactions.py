"""The metrics of transactions: the open ones by topic, what they hold back, and how transactions have ended."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import Struct, field

from exacta.core.ids import Cause, PartitionId, TransactionId
from exacta.core.state.state import State
from exacta.core.state.transaction import Transaction
from exacta.engine.engine import Engine
from exacta.engine.observer import FENCING
from exacta.metrics import families
from exacta.metrics.measured import Labels, Measured, labelled, largest, single

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

    def add(self, state: State, transaction: Transaction) -> None:
        """Take one transaction in."""
        age_ms = max(0, self.now_ms - transaction.start_ms)
        self.oldest_ms = max(self.oldest_ms, age_ms)
        topics = set()
        for partition_id in transaction.partitions:
            partition = state.partitions[partition_id]
            topics.add(partition.topic)
            if any(map(partition.has_open, transaction.producer_ids)):
                behind = partition.next_offset - partition.last_stable_offset
                self.partitions[partition_id] = partition.topic, behind
                if age_ms > self.late_ms:
                    self.late.add(partition_id)
        for topic in topics:
            self.counts[topic,] += 1
            self.oldest[topic,] = max(self.oldest[topic,], age_ms / 1000)


async def measure(engine: Engine, most_timeout_ms: int, most: int) -> list[Measured]:
    """Return the metrics; `most` is the bound on series."""
    look = engine.present.look
    ids: Sequence[TransactionId] = look(lambda state: list(state.transactions))
    found = _Open(engine.now_ms(), most_timeout_ms + LATE_BUFFER_MS)
    for begin in range(0, len(ids), AT_ONCE):
        look(partial(_add, found, ids[begin : begin + AT_ONCE]))
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


def _add(found: _Open, ids: Iterable[TransactionId], state: State) -> None:
    for each in ids:
        transaction = state.transactions.get(each)
        if transaction is not None:
            found.add(state, transaction)
