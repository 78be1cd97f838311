"""Read the fate of every transaction from the log itself.

This module owns the answer to "was the record at this offset committed?", found without the help of what is being
judged: not from the broker's list of aborted transactions, which `read_committed` readers trust, and not with Exacta's
own client.

Theory of operation: a fetch at isolation level `read_uncommitted` returns a partition whole, with its transactional
batches and with the control batches that end them. A control batch ends what its producer id has open in that
partition, whatever the epoch (a fencing abort carries a higher one). So one pass in offset order pairs each range of
transactional records with its outcome; what no control batch ends is undecided, and counts as not committed. The
bytes are fetched and parsed by aiokafka.
"""

from __future__ import annotations

import asyncio
import bisect
from collections.abc import Iterable
from typing import TYPE_CHECKING

from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.record import MemoryRecords
from aiokafka.structs import TopicPartition
from msgspec import Struct

if TYPE_CHECKING:
    from aiokafka.record.default_records import DefaultRecordBatch

_READ_UNCOMMITTED = 0
_FETCH_BYTES = 8 * 1024 * 1024
_COMMIT_MARKER = b"\x00\x00\x00\x01"  # key of a control record: version 0, type 1; type 0 is an abort


class RawLogError(Exception):
    """The raw log could not be fetched or parsed."""


class BatchRange(Struct, frozen=True, kw_only=True, order=True):
    """Describe one transactional batch: its offsets, both inclusive, and the number of its records."""

    first_offset: int
    last_offset: int
    records: int


class TransactionsOfPartition(Struct):
    """Collect, batch by batch in offset order, which ranges of one partition's offsets were not committed."""

    aborted: list[BatchRange] = []
    _open: dict[int, list[BatchRange]] = {}

    def data(self, producer_id: int, batch: BatchRange) -> None:
        """Note a transactional batch."""
        self._open.setdefault(producer_id, []).append(batch)

    def end(self, producer_id: int, *, committed: bool) -> None:
        """Note a control batch."""
        ended = self._open.pop(producer_id, [])
        if not committed:
            self.aborted.extend(ended)

    @property
    def undecided(self) -> list[BatchRange]:
        """Return the ranges of transactions that nothing in the log ends."""
        return [batch for ranges in self._open.values() for batch in ranges]


class TransactionsOfTopic:
    """Answer which offsets of a topic are committed."""

    def __init__(self, partitions: dict[int, TransactionsOfPartition]) -> None:
        self._not_committed = {
            partition: sorted(transactions.aborted + transactions.undecided)
            for partition, transactions in partitions.items()
        }
        self._first_offsets = {
            partition: [batch.first_offset for batch in ranges] for partition, ranges in self._not_committed.items()
        }
        self.aborted_records = sum(batch.records for t in partitions.values() for batch in t.aborted)
        self.undecided_records = sum(batch.records for t in partitions.values() for batch in t.undecided)

    def is_committed(self, partition: int, offset: int) -> bool:
        """Say whether a record is outside every transaction that was aborted or never ended."""
        ranges = self._not_committed.get(partition, [])
        index = bisect.bisect_right(self._first_offsets.get(partition, []), offset) - 1
        return index < 0 or offset > ranges[index].last_offset


def read_transactions(bootstrap_servers: str, topic: str, end_offsets: dict[int, int]) -> TransactionsOfTopic:
    """Read the partitions named in `end_offsets` up to these (exclusive) offsets and return their transactions' fates.

    Raises RawLogError.
    """
    return asyncio.run(_read_topic(bootstrap_servers, topic, end_offsets))


async def _read_topic(bootstrap_servers: str, topic: str, end_offsets: dict[int, int]) -> TransactionsOfTopic:
    client = AIOKafkaClient(bootstrap_servers=bootstrap_servers, client_id="exacta-demo-raw-log")
    await client.bootstrap()
    try:
        client.add_topic(topic)
        await client.force_metadata_update()
        partitions: dict[int, TransactionsOfPartition] = {}
        for partition, end_offset in end_offsets.items():
            partitions[partition] = await _read_partition(client, topic, partition, end_offset)
        return TransactionsOfTopic(partitions)
    finally:
        await client.close()


async def _read_partition(
    client: AIOKafkaClient, topic: str, partition: int, end_offset: int
) -> TransactionsOfPartition:
    transactions = TransactionsOfPartition()
    offset = 0
    while offset < end_offset:
        next_offset = offset
        for batch in _batches(await _fetch(client, topic, partition, offset)):
            if batch.next_offset > next_offset:
                next_offset = batch.next_offset
                _note(transactions, batch)
        if next_offset == offset:
            raise RawLogError(f"{topic}-{partition}: nothing at offset {offset}, before the end at {end_offset}")
        offset = next_offset
    return transactions


async def _fetch(client: AIOKafkaClient, topic: str, partition: int, offset: int) -> bytes:
    request = FetchRequest(
        max_wait_time=500,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        isolation_level=_READ_UNCOMMITTED,
        topics=[(topic, [(partition, offset, _FETCH_BYTES)])],
    )
    leader = client.cluster.leader_for_partition(TopicPartition(topic, partition))
    response = await client.send(leader, request)
    for _, fetched in response.topics:
        for _, error_code, *_, records in fetched:
            if error_code != 0:
                raise RawLogError(f"{topic}-{partition}: fetch at offset {offset} failed with error code {error_code}")
            return bytes(records or b"")
    raise RawLogError(f"{topic}-{partition}: an empty answer to a fetch at offset {offset}")


def _batches(data: bytes) -> Iterable[DefaultRecordBatch]:
    records = MemoryRecords(data)
    while records.has_next():
        yield records.next_batch()


def _note(transactions: TransactionsOfPartition, batch: DefaultRecordBatch) -> None:
    if batch.is_control_batch:
        marker = next(iter(batch)).key
        transactions.end(batch.producer_id, committed=marker == _COMMIT_MARKER)
    elif batch.is_transactional:
        records = sum(1 for _ in batch)
        transactions.data(
            batch.producer_id,
            BatchRange(first_offset=batch.base_offset, last_offset=batch.next_offset - 1, records=records),
        )
