"""Small transactions: each producer commits one 100-byte message at a time and waits for the commit before the next.

Or one message to each of many partitions: what a transaction costs that touches them all, from its begin on.

Many producers are threads of a few processes: the client releases Python's lock while it waits, and librdkafka's own
threads do the work, so two processes keep two cores busy without being the limit by themselves.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.clients import transactional_producer
from benchmarks.figures import Figure
from benchmarks.session import Scale, Session
from benchmarks.workers import Gate, Tally

MESSAGE = bytes(100)


def run(
    session: Session, case: str, producers: int, processes: int, partitions: int, width: int = 1
) -> Iterator[Figure]:
    """Run this many producers, spread over this many processes and over the partitions of one topic.

    `width`: how many partitions each transaction writes to.
    """
    topic = session.topic("transactions", partitions)
    prefix = session.name("producer")
    shared = {"topic": topic, "prefix": prefix, "partitions": partitions, "width": width}
    workers = [{**shared, "indexes": range(first, producers, processes)} for first in range(processes)]
    figures, outcomes = session.measure(case, "txn/s", commit_one_by_one, workers)
    session.expect_committed(topic, partitions, sum(outcome.tally.acknowledged for outcome in outcomes))
    yield from figures


def commit_one_by_one(
    gate: Gate, *, bootstrap: str, scale: Scale, topic: str, prefix: str, partitions: int, width: int, indexes: range
) -> Tally:
    """Load: one thread for each producer, all measured over the same time."""
    producers = [
        _Producer(bootstrap, f"{prefix}-{index}", topic, [(index + each) % partitions for each in range(width)])
        for index in indexes
    ]
    _run_all(producers, scale.warm_up_s)
    warm_up = sum(len(producer.latencies_ms) for producer in producers)
    for producer in producers:
        producer.latencies_ms.clear()
    with gate.measured():
        _run_all(producers, scale.seconds)
    latencies_ms = [each for producer in producers for each in producer.latencies_ms]
    in_time = len(latencies_ms) - sum(producer.late for producer in producers)
    return Tally(
        operations=in_time,
        seconds=scale.seconds,
        latencies_ms=latencies_ms,
        acknowledged=(warm_up + len(latencies_ms)) * width,
    )


def _run_all(producers: list["_Producer"], seconds: float) -> None:
    """Run all producers at once for some time; raises the first error that one of them met."""
    deadline_s = time.perf_counter() + seconds
    # The last one needs no thread of its own, so that a single producer is not charged for one.
    threads = [threading.Thread(target=producer.run_until, args=(deadline_s,)) for producer in producers[:-1]]
    for thread in threads:
        thread.start()
    producers[-1].run_until(deadline_s)
    for thread in threads:
        thread.join()
    for producer in producers:
        if producer.error is not None:
            raise producer.error


@dataclass
class _Producer:
    """A synchronous transactional producer and what it has measured."""

    bootstrap: str
    transactional_id: str
    topic: str
    partitions: Sequence[int]
    """Each transaction writes one message to each."""
    latencies_ms: list[float] = field(default_factory=list)
    late: int = 0
    """Transactions that ended after the deadline: they have a latency, but do not count for the rate."""
    error: Exception | None = None
    _producer: Any = None

    def run_until(self, deadline_s: float) -> None:
        """Commit transaction after transaction until the deadline; an error ends it and is kept."""
        self.late = 0
        try:
            if self._producer is None:
                self._producer = transactional_producer(self.bootstrap, self.transactional_id)
            producer = self._producer
            started_s = time.perf_counter()
            while started_s < deadline_s:
                producer.begin_transaction()
                for partition in self.partitions:
                    producer.produce(self.topic, MESSAGE, partition=partition)
                producer.commit_transaction()
                ended_s = time.perf_counter()
                self.latencies_ms.append((ended_s - started_s) * 1000)
                self.late += ended_s > deadline_s
                started_s = ended_s
        except Exception as error:  # noqa: BLE001  (raised again in the thread that waits for this one)
            self.error = error
