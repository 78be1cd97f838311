"""The time from when a message was due until a read_committed consumer has it, at a fixed rate.

Due times are fixed beforehand, so that a pause is charged with all the messages that it held up. Ten messages make a
transaction and are due together: were they due one after another, the first would wait for the last, which says nothing
about a broker, and ten milliseconds would be the least that any could reach.
"""

import threading
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import TopicPartition

from benchmarks.clients import ReadingFailedError, committed_consumer, transactional_producer
from benchmarks.figures import Figure
from benchmarks.session import Scale, Session
from benchmarks.workers import Gate, Tally

PER_TRANSACTION = 10
STALL_S = 20.0
PAYLOAD = bytes(92)


def run(session: Session, case: str, rate: int) -> Iterator[Figure]:
    """Send this many messages of 100 bytes a second, and read them."""
    options = {"topic": session.topic("flow"), "name": session.name("flow"), "rate": rate}
    figures, _ = session.measure(case, "msg/s", flow, [options])
    yield from figures


def flow(gate: Gate, *, bootstrap: str, scale: Scale, topic: str, name: str, rate: int) -> Tally:
    """Load: a producer in this thread, a consumer in another one."""
    producer = transactional_producer(bootstrap, name)
    consumer = committed_consumer(bootstrap, name, fetch_wait_max_ms=500)
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        _flow(producer, consumer, topic, rate, scale.warm_up_s)
        with gate.measured():
            begun_s = time.perf_counter()
            latencies_ms = _flow(producer, consumer, topic, rate, scale.seconds)
            seconds = time.perf_counter() - begun_s
    finally:
        consumer.close()
    return Tally(operations=len(latencies_ms), seconds=seconds, latencies_ms=latencies_ms)


def _flow(producer: Any, consumer: Any, topic: str, rate: int, seconds: float) -> list[float]:
    count = max(1, round(rate * seconds) // PER_TRANSACTION) * PER_TRANSACTION
    latencies_ms: list[float] = []
    errors: list[Exception] = []
    begun_s = time.perf_counter() + 0.01

    def read() -> None:
        try:
            _read(consumer, count, begun_s, rate, latencies_ms)
        except Exception as error:  # noqa: BLE001  (raised again in the thread that waits for this one)
            errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(count):
            if number % PER_TRANSACTION == 0:
                time.sleep(max(0.0, begun_s + number / rate - time.perf_counter()))
                producer.begin_transaction()
            producer.produce(topic, number.to_bytes(8, "big") + PAYLOAD, partition=0)
            if (number + 1) % PER_TRANSACTION == 0:
                producer.commit_transaction()
    finally:
        reader.join()  # where nothing more comes it gives up by itself
    if errors:
        raise errors[0]
    return latencies_ms


def _read(consumer: Any, count: int, begun_s: float, rate: int, latencies_ms: list[float]) -> None:
    while len(latencies_ms) < count:
        message = consumer.poll(STALL_S)
        if message is None:
            raise ReadingFailedError(f"no message came within {STALL_S:.0f} s")
        if (error := message.error()) is not None:
            raise ReadingFailedError(f"reading: {error}")
        number = int.from_bytes(message.value()[:8], "big")
        if number != len(latencies_ms):
            raise ReadingFailedError(f"message {number} came where {len(latencies_ms)} was due")
        due_s = begun_s + number // PER_TRANSACTION * PER_TRANSACTION / rate
        latencies_ms.append((time.perf_counter() - due_s) * 1000)
