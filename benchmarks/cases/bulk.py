"""Bulk data: one idempotent producer as fast as it goes, then one read_committed consumer of the same partition.

Messages are sent and taken in batches of the Python client, so that librdkafka and the broker are what is measured
rather than calls from Python. Reading the whole topic afterwards checks that everything sent is there, once and in
order of offsets.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import TopicPartition

from benchmarks.clients import ReadingFailedError, committed_consumer, idempotent_producer
from benchmarks.figures import Figure
from benchmarks.session import Scale, Session
from benchmarks.workers import Gate, Tally

BATCH = 1_000
CONSUME_BATCH = 10_000
STALL_S = 20.0
EAGER = {"queued_min_messages": 1_000_000, "fetch_queue_backoff_ms": 1}
"""The size of a consumer's queue. With the small default a consumer stops fetching for a second when the queue is full,
which is no pause of the broker's."""
MESSAGES_PER_SECOND = {100: 1_000_000, 1_000: 160_000}
"""The number of messages of each size to move for each second of the scale: two cores take this many in a second."""


def run(session: Session, case: str, message_bytes: int, per_transaction: int | None = None) -> Iterator[Figure]:
    """Produce, then consume, messages of one size, this many in each transaction; None: without transactions."""
    messages = round(MESSAGES_PER_SECOND[message_bytes] * session.scale.seconds / BATCH) * BATCH or BATCH
    topic, warm_up_topic = session.topic("bulk"), session.topic("bulk-warm-up")
    options = {"topic": topic, "warm_up_topic": warm_up_topic, "message_bytes": message_bytes, "messages": messages}
    transactional_id = None if per_transaction is None else session.name("bulk")
    markers = 0 if per_transaction is None else -(-messages // per_transaction) - 1
    producing = {"per_transaction": per_transaction, "transactional_id": transactional_id}
    yield from session.measure(f"{case} produce", "msg/s", produce, [{**options, **producing}])[0]
    group = session.name("bulk")
    consuming = {"group": group, "markers": markers}
    yield from session.measure(f"{case} consume", "msg/s", consume, [{**options, **consuming}])[0]
    if (used := session.usage()) is not None:
        yield Figure(case=f"{case} afterwards", name="RSS MB", value=used.resident_bytes / 1e6)


def fill(session: Session, topic: str, messages: int, message_bytes: int) -> None:
    """Fill a topic with input for another case."""
    options = {"topic": topic, "warm_up_topic": None, "message_bytes": message_bytes, "messages": messages}
    session.run(produce, [options])


def produce(
    gate: Gate,
    *,
    bootstrap: str,
    scale: Scale,
    topic: str,
    warm_up_topic: str | None,
    message_bytes: int,
    messages: int,
    per_transaction: int | None = None,
    transactional_id: str | None = None,
) -> Tally:
    """Load: send this many messages and wait until all are acknowledged, or committed."""
    producer = idempotent_producer(bootstrap, transactional_id)
    at_once = per_transaction or messages
    batch = [{"value": bytes(message_bytes)} for _ in range(BATCH)]
    if warm_up_topic is not None:
        deadline_s = time.perf_counter() + scale.bulk_warm_up_s
        while time.perf_counter() < deadline_s:
            with _transaction(producer, transactional_id):
                for _ in range(at_once // BATCH):
                    send(producer, warm_up_topic, batch)
                    if time.perf_counter() >= deadline_s:
                        break
        producer.flush()
    with gate.measured():
        started_s = time.perf_counter()
        for begin in range(0, messages, at_once):
            with _transaction(producer, transactional_id):
                for _ in range(min(at_once, messages - begin) // BATCH):
                    send(producer, topic, batch)
        if left := producer.flush(STALL_S):
            raise TimeoutError(f"{left} messages were not acknowledged within {STALL_S:.0f} s")
        seconds = time.perf_counter() - started_s
    return Tally(operations=messages, payload_bytes=messages * message_bytes, seconds=seconds, acknowledged=messages)


@contextmanager
def _transaction(producer: Any, transactional_id: str | None) -> Iterator[None]:
    if transactional_id is not None:
        producer.begin_transaction()
    yield
    if transactional_id is not None:
        producer.commit_transaction()


def send(producer: Any, topic: str, batch: list[dict[str, bytes]], partition: int = 0) -> None:
    """Queue the whole batch for a partition, waiting for room where the client's queue is full."""
    sent = 0
    while sent < len(batch):
        # Messages are queued in order until there is no room, so what was taken is always a prefix.
        rest = batch[sent:] if sent else batch
        sent += producer.produce_batch(topic, rest, partition=partition)
        producer.poll(0 if sent == len(batch) else 0.01)


def consume(
    gate: Gate,
    *,
    bootstrap: str,
    scale: Scale,
    topic: str,
    warm_up_topic: str,
    message_bytes: int,
    messages: int,
    group: str,
    markers: int,
) -> Tally:
    """Load: read the partition from its start until this many messages have come; this many markers lie among them."""
    _read(bootstrap, group, warm_up_topic, limit=None, limit_s=scale.bulk_warm_up_s)
    with gate.measured():
        started_s = time.perf_counter()
        received, next_offset, ended_s = _read(bootstrap, group, topic, limit=messages, limit_s=None)
    end = messages + markers
    if (received, next_offset) != (messages, end):
        raise ReadingFailedError(f"{messages} messages, up to {end}; {received} were read, up to {next_offset}")
    return Tally(operations=received, payload_bytes=received * message_bytes, seconds=ended_s - started_s)


def _read(
    bootstrap: str, group: str, topic: str, *, limit: int | None, limit_s: float | None
) -> tuple[int, int, float]:
    """Read from offset 0 until limit, time or data ends; return how many came, the offset after the last, and when.

    Only the last message of each batch is looked at, to keep Python out of the figures: an error event among them would
    count as a message and so show as a difference between number and offset. Each reading has a consumer of its own:
    one that goes over to another topic first waits out the fetch that it has under way at the end of the old one.
    """
    consumer = committed_consumer(bootstrap, group, **EAGER)
    consumer.assign([TopicPartition(topic, 0, 0)])
    deadline_s = time.perf_counter() + limit_s if limit_s is not None else None
    received, next_offset = 0, 0
    while (limit is None or received < limit) and (deadline_s is None or time.perf_counter() < deadline_s):
        wanted = CONSUME_BATCH if limit is None else min(CONSUME_BATCH, limit - received)
        messages = consumer.consume(num_messages=wanted, timeout=STALL_S if deadline_s is None else 0.2)
        if not messages:
            break
        if (error := messages[-1].error()) is not None:
            raise ReadingFailedError(f"reading {topic}: {error}")
        received += len(messages)
        next_offset = messages[-1].offset() + 1
    ended_s = time.perf_counter()
    consumer.close()
    return received, next_offset, ended_s
