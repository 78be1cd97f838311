"""Consume, transform, produce: the loop of exactly-once processing, with its offsets committed in the same transaction.

One consumer in a group, one transactional producer, this many records in each transaction; the latency is of a
whole turn of the loop, reading included. Where the target has several partitions, the records of a transaction go to
all of them, as they do wherever records have keys.
"""

import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import TopicPartition

from benchmarks.cases import bulk
from benchmarks.clients import ReadingFailedError, committed_consumer, transactional_producer
from benchmarks.figures import Figure
from benchmarks.session import Scale, Session
from benchmarks.workers import Gate, Tally

MESSAGE_BYTES = 100
INPUT_RECORDS_PER_SECOND = 60_000
"""The input for each second, more than any broker has been seen to get through. The measured part ends where it runs
out."""
OFFSETS_TIMEOUT_S = 30.0
STALL_S = 20.0


def run(session: Session, case: str, records: int, partitions: int) -> Iterator[Figure]:
    """Run the loop with this many records in each transaction, spread over this many partitions."""
    source, target = session.topic("source"), session.topic("target", partitions)
    scale = session.scale
    messages = round((scale.seconds + scale.warm_up_s) * INPUT_RECORDS_PER_SECOND / bulk.BATCH) * bulk.BATCH
    bulk.fill(session, source, messages, MESSAGE_BYTES)
    name = session.name("transform")
    options = {
        "source": source,
        "target": target,
        "partitions": partitions,
        "name": name,
        "records": records,
        "messages": messages,
    }
    figures, outcomes = session.measure(case, "txn/s", transform, [options])
    session.expect_committed(target, partitions, records * sum(outcome.tally.acknowledged for outcome in outcomes))
    yield from figures


def transform(
    gate: Gate,
    *,
    bootstrap: str,
    scale: Scale,
    source: str,
    target: str,
    partitions: int,
    name: str,
    records: int,
    messages: int,
) -> Tally:
    """Load: turn after turn of the loop, until time or input ends."""
    consumer = committed_consumer(bootstrap, name)
    producer = transactional_producer(bootstrap, name)
    consumer.subscribe([source])
    turns = messages // records

    def run_until(deadline_s: float, done: int) -> list[float]:
        latencies_ms: list[float] = []
        started_s = time.perf_counter()
        while started_s < deadline_s and done + len(latencies_ms) < turns:
            _turn(consumer, producer, target, partitions, records)
            ended_s = time.perf_counter()
            latencies_ms.append((ended_s - started_s) * 1000)
            started_s = ended_s
        return latencies_ms

    try:
        _turn(consumer, producer, target, partitions, records)  # joins the group: no part of the warm-up
        warm_up = 1 + len(run_until(time.perf_counter() + scale.warm_up_s, done=1))
        with gate.measured():
            started_s = time.perf_counter()
            latencies_ms = run_until(started_s + scale.seconds, done=warm_up)
            seconds = time.perf_counter() - started_s
        acknowledged = warm_up + len(latencies_ms)
        committed = consumer.committed([TopicPartition(source, 0)], OFFSETS_TIMEOUT_S)[0].offset
        if committed != acknowledged * records:
            raise ReadingFailedError(f"offset {acknowledged * records} was committed, the broker says {committed}")
        return Tally(
            operations=len(latencies_ms), seconds=seconds, latencies_ms=latencies_ms, acknowledged=acknowledged
        )
    finally:
        consumer.close()


def _turn(consumer: Any, producer: Any, target: str, partitions: int, records: int) -> None:
    """Read, transform and write this many records and commit them with their offsets."""
    messages: list[Any] = []
    while len(messages) < records:
        more = consumer.consume(num_messages=records - len(messages), timeout=STALL_S)
        if not more:
            raise ReadingFailedError(f"no record came within {STALL_S:.0f} s")
        messages += more
    producer.begin_transaction()
    for index, message in enumerate(messages):
        if (error := message.error()) is not None:
            raise ReadingFailedError(f"reading the source: {error}")
        producer.produce(target, message.value()[::-1], partition=index % partitions)
    offsets = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), OFFSETS_TIMEOUT_S)
    producer.commit_transaction()
