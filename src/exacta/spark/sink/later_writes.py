"""Look for a batch that a sink has committed since its note: then the checkpoint is older than the output.

This module owns what a note says of the transactions of the last batch with rows, and where a later batch shows.
`note.py` owns what follows.

Theory of operation. Apache Kafka forgets the records of a query that has rested for long. The sink then goes by its
note. If the checkpoint is an older copy, so is the note, and the batches in between would be written once more. A job
that runs once a month looks the same, except that it has committed nothing since its note. A transactional id keeps its
producer id from batch to batch, and each batch has a newer epoch. So any of these proves that there was a later batch:

- a replay marker of the batch at hand or of a later one;
- a transactional id of an attempt whose last transaction was committed, and is not the one in the note;
- committed rows of a producer in the note, under a newer epoch than the note's. No clock decides: the time in the note
  only tells where to begin to read.

Only data of the same cluster is compared, since producer ids begin again in each. That nothing is found proves nothing:
ids change when they expire or when their epochs are used up, and the rows in between may be deleted.
"""

import logging
from collections.abc import Collection, Generator
from contextlib import closing, suppress

import msgspec

from exacta.client.fetcher import fetch_range
from exacta.client.group_administration import list_groups
from exacta.client.group_offsets import fetch_stable_offsets
from exacta.client.routing import Client, UnknownTopic
from exacta.client.topics import LATEST, READ_COMMITTED, list_offsets
from exacta.client.transactions import COMPLETE_COMMIT, Producer, TopicPartition, describe_transactions
from exacta.protocol.kafka.committed import visible_batches
from exacta.protocol.kafka.records import BatchHeader
from exacta.spark.sink.names import QueryNames

logger = logging.getLogger("exacta.spark")

_MOST_PRODUCERS = 64
_MOST_TOPICS = 16
"""A note is written for each batch, so it stays small. A later batch is most likely of the same tasks."""

_EARLIER_MS = 10 * 60 * 1000
"""Rows are read from this long before the note: the clocks of executors, brokers and driver differ."""

_MOST_BYTES = 64 * 1024 * 1024
_FETCH_BYTES = 1024 * 1024
"""All partitions together are read up to this many bytes, each by one fetch at least."""

_NEWEST_EPOCH = 2**15 - 1
"""No producer has a newer one."""


class LastWrites(msgspec.Struct, frozen=True, kw_only=True):
    """The transactions of the last batch with rows, as a note holds them."""

    cluster: str
    time_ms: int  # of the note, by the driver's clock
    topics: tuple[str, ...]  # that rows were written to
    producers: dict[str, tuple[int, int]]  # producer id and epoch by transactional id

    @classmethod
    def of(
        cls, client: Client, producers: Collection[Producer], topics: Collection[str], time_ms: int
    ) -> "LastWrites | None":
        """Return what is to be noted of a batch, or None where the cluster has no id."""
        if client.cluster_id is None:
            return None
        ids = {each.transactional_id: each[1:] for each in sorted(producers)[:_MOST_PRODUCERS]}
        return cls(
            cluster=client.cluster_id, time_ms=time_ms, topics=tuple(sorted(topics)[:_MOST_TOPICS]), producers=ids
        )


def later_writes(
    client: Client, names: QueryNames, marker: TopicPartition, batch_id: int, last: LastWrites | None
) -> str | None:
    """Return what shows that the sink has committed batch `batch_id` or a later one, or None.

    `marker` is the partition of the query's records, `last` what the note says. Raises what the client raises.
    """
    found = _later_marker(client, names, marker, batch_id)
    if found is None and last is not None and client.cluster_id == last.cluster:
        found = _later_transaction(client, names, last) or _later_rows(client, last)
    return found


def _later_marker(client: Client, names: QueryNames, marker: TopicPartition, batch_id: int) -> str | None:
    groups = [each for each in list_groups(client, names.prefix) if names.is_marker_group(each)]
    for group, offset in fetch_stable_offsets(client, groups, marker).items():
        if offset is not None and offset.offset >= batch_id:
            return f"group '{group}' says that rows of batch {offset.offset} are committed"
    return None


def _later_transaction(client: Client, names: QueryNames, last: LastWrites) -> str | None:
    # Not the driver's: it has also committed that a sink begins.
    attempts = [each for each in last.producers if names.is_attempt(each)]
    for transactional_id, state in describe_transactions(client, attempts).items():
        if state is None or state.state != COMPLETE_COMMIT:
            continue
        if (state.producer_id, state.producer_epoch) != last.producers[transactional_id]:
            return f"transactional id '{transactional_id}' has committed a transaction since"
    return None


def _later_rows(client: Client, last: LastWrites) -> str | None:
    partitions: list[TopicPartition] = []
    for topic in last.topics:
        with suppress(UnknownTopic):  # deleted since
            partitions += [TopicPartition(topic, index) for index in range(client.partitions([topic])[topic])]
    starts = list_offsets(client, partitions, last.time_ms - _EARLIER_MS)
    ends = list_offsets(client, partitions, LATEST)
    epochs = dict(last.producers.values())
    doubtful: TopicPartition | None = None
    for partition in partitions:
        if starts[partition] < 0:  # no record is as young
            continue
        bounds = starts[partition], ends[partition]
        with closing(_committed(client, partition, *bounds, _MOST_BYTES // len(partitions))) as batches:
            for header in batches:
                if header.transactional and header.producer_epoch > epochs.get(header.producer_id, _NEWEST_EPOCH):
                    return f"partition {partition} has rows at offset {header.base_offset} that it has committed since"
                if header.transactional and header.producer_id not in epochs and header.max_timestamp > last.time_ms:
                    doubtful = partition
    if doubtful is not None:
        logger.warning(
            "the cluster has forgotten what this sink has committed, and transactions of unknown producers have "
            "written to %s since: if the checkpoint was restored from an older copy, stop the query, for it writes the "
            "batches in between once more",
            doubtful,
        )
    return None


def _committed(
    client: Client, partition: TopicPartition, start: int, end: int, most_bytes: int
) -> Generator[BatchHeader, None, None]:
    """Yield the headers of committed batches, up to about this many bytes."""
    max_bytes = min(most_bytes, _FETCH_BYTES)
    with closing(
        fetch_range(client, partition, start, end, isolation_level=READ_COMMITTED, max_bytes=max_bytes)
    ) as fetches:
        for fetched in fetches:
            for header, _ in visible_batches(fetched.records, fetched.aborted, committed_only=True):
                yield header
            most_bytes -= len(fetched.records)
            if most_bytes <= 0:
                return
