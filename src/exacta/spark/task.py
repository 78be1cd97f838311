"""The sink's transaction protocol on a task's side (DESIGN.md §5, step 2).

Owns one attempt of one task: its transaction, left open for the driver to end, with the replay marker as its last
write. Spark may run several attempts of a task, one after the other or side by side; each has a transactional id of
its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from exacta.client.errors import ClientError, KafkaError
from exacta.client.producer import NO_HEADERS, Header, TransactionalProducer
from exacta.client.routing import Client
from exacta.client.transactions import (
    CommittedOffset,
    Producer,
    TopicPartition,
    commit_offset,
    end_transaction,
    init_producer_id,
)
from exacta.protocol.errors import ErrorCode
from exacta.spark.incarnations import is_current
from exacta.spark.messages import Prepared, TaskResult
from exacta.spark.names import QueryNames
from exacta.spark.options import SinkOptions
from exacta.spark.partitioner import partitions_of_keys
from exacta.spark.rows import Rows, rows_of
from exacta.spark.sink_errors import NewerDriver, SinkError

#: How long a failing attempt tries to abort its transaction itself; the driver's sweep is there if it cannot.
_ABORT_TIMEOUT_MS = 2_000


def write_task(
    client: Client,
    options: SinkOptions,
    prepared: Prepared,
    batches: Iterator[Any],
    *,
    batch_id: int,
    task: int,
    attempt: int,
) -> TaskResult:
    """Write a task's rows into a transaction of its own and leave it open; return what the driver needs to end it.

    A task whose rows are committed already only drains its input (state stores of the same task commit that way).
    """
    replayed = _is_committed(prepared, batch_id, task)
    told = partial(
        TaskResult,
        task=task,
        attempt=attempt,
        driver=prepared.driver,
        partly=batch_id == prepared.decided_batch and prepared.committed_tasks is not None,
    )
    rows = (batch for batch in batches if batch.num_rows)
    first = next(rows, None)
    if replayed or first is None:
        count = sum(batch.num_rows for batch in rows) + (0 if first is None else first.num_rows)
        return told(producer=None, rows=count, replayed=replayed)
    names = QueryNames(prepared.name)
    producer = _take(client, prepared, names.attempt(task, attempt), options.transaction_timeout_ms)
    writer = _Writer(client, options, producer, rotation=batch_id + task)
    try:
        writer.write(first)
        for batch in rows:
            writer.write(batch)
        writer.flush()
        marker = CommittedOffset(batch_id, f"{batch_id}:{attempt}")
        commit_offset(client, producer, names.marker_group(task), prepared.marker, marker)
    except BaseException as error:
        with suppress(ClientError):
            end_transaction(client, producer, commit=False, deadline=client.deadline(_ABORT_TIMEOUT_MS))
        if isinstance(error, KafkaError) and error.fenced:
            raise SinkError(
                f"the transaction of task {task} of batch {batch_id} was ended while the task was writing: another run "
                "of the query has begun, or the task took longer than option 'kafka.transaction.timeout.ms' "
                f"({options.transaction_timeout_ms})"
            ) from error
        raise
    finally:
        writer.close()
    return told(producer=producer, rows=writer.rows, partitions=writer.partitions)


def _take(client: Client, prepared: Prepared, transactional_id: str, transaction_timeout_ms: int) -> Producer:
    """Take over the transactional id of this attempt, unless a newer driver has taken the query over.

    Asked before, so that a straggler of an older run takes nothing away from a task of this one; where it does in the
    moment between, that task is fenced and its batch cannot be decided. Asked after, so that what an abort has looked
    at without finding this attempt opens no transaction. By name, not from an expected incarnation: KIP-360 takes two
    that expect the same one for a client that repeats itself, and gives both the same epoch.
    """
    if not is_current(client, prepared.driver):
        raise NewerDriver(prepared.name)
    try:
        producer = init_producer_id(client, transactional_id, transaction_timeout_ms=transaction_timeout_ms)
    except KafkaError as error:
        if error.code != ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            raise
        raise SinkError(
            f"the brokers allow no transaction of {transaction_timeout_ms} ms: lower option "
            "'kafka.transaction.timeout.ms' to their 'transaction.max.timeout.ms', or raise that"
        ) from error
    if not is_current(client, prepared.driver):
        raise NewerDriver(prepared.name)
    return producer


def _is_committed(prepared: Prepared, batch_id: int, task: int) -> bool:
    if batch_id < prepared.decided_batch:
        raise SinkError(
            f"the checkpoint is older than the output: it repeats batch {batch_id}, but batch "
            f"{prepared.decided_batch} of this query is committed; was it restored from a copy? Start the query with a "
            "new checkpoint"
        )
    if batch_id > prepared.decided_batch:
        return False
    return prepared.committed_tasks is None or task in prepared.committed_tasks


class _Writer:
    """Sends rows to their partitions."""

    def __init__(self, client: Client, options: SinkOptions, producer: Producer, *, rotation: int) -> None:
        self._client = client
        self._options = options
        self._partitions: dict[str, list[TopicPartition]] = {}
        self._sticky: dict[str, int] = {}
        self._rotation = rotation
        self._producer = TransactionalProducer(
            client,
            producer,
            batch_size_bytes=options.batch_size_bytes,
            compression=options.compression,
            delivery_timeout_ms=options.delivery_timeout_ms,
        )
        self.rows = 0
        self.flush = self._producer.flush
        self.close = self._producer.close

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions that rows were written to."""
        return self._producer.partitions

    def write(self, batch: Any) -> None:
        """Append a pyarrow record batch, row by row."""
        rows = rows_of(batch)
        now_ms = int(time.time() * 1000)
        append = self._producer.append
        keys = rows.keys if rows.keys is not None else [None] * rows.size
        headers = [_headers(row) for row in rows.headers] if rows.headers is not None else [NO_HEADERS] * rows.size
        for target, key, value, header in zip(self._targets(rows), keys, rows.values, headers, strict=True):
            if type(target) is str:
                # Rows without a key stay on one partition until its batch is full: fewer, larger batches.
                if append(self._sticky_partition(target), now_ms, key, value, header):
                    self._sticky[target] = self._sticky.get(target, self._rotation) + 1
            else:
                append(target, now_ms, key, value, header)
        self.rows += rows.size

    def _targets(self, rows: Rows) -> Iterator[Any]:
        """Yield for each row its partition, or only its topic where the writer may choose."""
        if rows.topics is None and rows.partitions is None:
            topic = self._options.topic
            assert topic is not None
            partitions = self._partitions_of(topic)
            if rows.key_array is None:
                yield from (topic for _ in range(rows.size))
                return
            for index in partitions_of_keys(rows.key_array, len(partitions)).tolist():
                yield topic if index < 0 else partitions[index]
            return
        yield from self._targets_by_row(rows)

    def _targets_by_row(self, rows: Rows) -> Iterator[Any]:
        topics = self._topics_by_row(rows)
        indexes = {
            count: partitions_of_keys(rows.key_array, count).tolist() if rows.key_array is not None else None
            for count in {len(self._partitions_of(topic)) for topic in set(topics)}
        }
        for row, topic in enumerate(topics):
            partitions = self._partitions_of(topic)
            explicit = rows.partitions[row] if rows.partitions is not None else None
            if explicit is not None:
                if not 0 <= explicit < len(partitions):
                    raise SinkError(f"a row names partition {explicit} of topic '{topic}', which has {len(partitions)}")
                yield partitions[explicit]
                continue
            hashed = indexes[len(partitions)]
            yield topic if hashed is None or hashed[row] < 0 else partitions[hashed[row]]

    def _topics_by_row(self, rows: Rows) -> list[str]:
        # As in Spark's connector, the option wins over the column.
        if self._options.topic is not None or rows.topics is None:
            assert self._options.topic is not None
            return [self._options.topic] * rows.size
        topics = []
        for topic in rows.topics:
            if topic is None:
                raise SinkError("a row has no topic: its column 'topic' is null, and option 'topic' is not set")
            topics.append(topic)
        return topics

    def _partitions_of(self, topic: str) -> list[TopicPartition]:
        found = self._partitions.get(topic)
        if found is None:
            count = self._client.partitions([topic], create=True)[topic]
            found = self._partitions[topic] = [TopicPartition(topic, index) for index in range(count)]
        return found

    def _sticky_partition(self, topic: str) -> TopicPartition:
        partitions = self._partitions_of(topic)
        return partitions[self._sticky.get(topic, self._rotation) % len(partitions)]


def _headers(row: list[dict[str, Any]] | None) -> list[Header]:
    return [(header["key"], header["value"]) for header in row] if row else NO_HEADERS
