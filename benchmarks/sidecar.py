"""Sidecar topics beside marker topics, by turns: small transactions, bulk, a large one, and readers beside an open one.

`make bench-sidecar`. One broker runs. Each turn does the same on a topic of either kind, in an order that alternates.
Each figure is the median of the turns, with its range.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.one_log import with_range
from benchmarks.processes import accepts_connections, free_ports, serving

HOST = "127.0.0.1"
SECONDS = 120
KINDS = ("marker", "sidecar")
SMALL = 150
"""Transactions of one message that a producer makes in a turn."""
MANY = 50
"""Producers at once in txn-50."""
BULK = 100_000
"""Messages of 1 kB in transactions of 10,000."""
LARGE = 1_000_000
"""Messages of 100 bytes in one transaction."""
OPEN_S = 3.0
"""The time for which a transaction is held open beside the readers."""


class Bench:
    """Clients of one broker."""

    def __init__(self, servers: str) -> None:
        self._servers = {"bootstrap.servers": servers}
        self._admin = AdminClient(self._servers)
        self._names = map(str, count())

    def topic(self, kind: str) -> str:
        """Make a topic of one partition."""
        name = f"{kind}-{next(self._names)}"
        new = NewTopic(name, 1, config={"transaction.buffer": kind})
        self._admin.create_topics([new])[name].result(SECONDS)
        return name

    def producer(self) -> Producer:
        """Return a producer that may begin a transaction."""
        settings = {
            "transactional.id": f"producer-{next(self._names)}",
            "transaction.timeout.ms": 600_000,
            "linger.ms": 5,
        }
        producer = Producer({**self._servers, **settings, "queue.buffering.max.messages": 1_000_000})
        producer.init_transactions(SECONDS)
        return producer

    def transactions(self, topic: str, producers: int) -> float:
        """Return the transactions of one message a second that this many producers make at once."""
        each = max(5, SMALL // producers * 2)

        def work(producer: Producer) -> None:
            for _ in range(each):
                producer.begin_transaction()
                producer.produce(topic, bytes(100), partition=0)
                producer.commit_transaction(SECONDS)

        made = [self.producer() for _ in range(producers)]
        threads = [threading.Thread(target=work, args=(producer,)) for producer in made]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return producers * each / (time.perf_counter() - began)

    def write(self, producer: Producer, topic: str, messages: int, size: int) -> None:
        """Write this many messages, and wait for all of them."""
        for _ in range(messages):
            while True:
                try:
                    producer.produce(topic, bytes(size), partition=0)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(SECONDS) == 0

    def bulk(self, topic: str) -> tuple[float, float]:
        """Return the MB/s of messages in transactions of 10,000, written and read."""
        producer, began = self.producer(), time.perf_counter()
        for _ in range(BULK // 10_000):
            producer.begin_transaction()
            self.write(producer, topic, 10_000, 1_000)
            producer.commit_transaction(SECONDS)
        written = BULK / 1_000 / (time.perf_counter() - began)
        began = time.perf_counter()
        self.read(topic, BULK)
        return written, BULK / 1_000 / (time.perf_counter() - began)

    def read(self, topic: str, messages: int) -> None:
        """Read this many messages from the beginning."""
        consumer = self.consumer(topic)
        found = 0
        while found < messages:
            found += len(consumer.consume(min(10_000, messages - found), SECONDS))
        consumer.close()

    def consumer(self, topic: str) -> Consumer:
        """Return a reader of committed messages, at the beginning."""
        consumer = Consumer({**self._servers, "group.id": "readers", "fetch.wait.max.ms": 20})
        consumer.assign([TopicPartition(topic, 0, 0)])
        return consumer

    def large(self, topic: str) -> tuple[float, float, float]:
        """Write one large transaction beside small ones elsewhere.

        Return the milliseconds of its commit, and the slowest of the small ones while it is written, and at its commit.
        """
        other = self.producer()
        elsewhere = self.topic("marker")
        took: list[tuple[float, float]] = []
        with self._beside(other, elsewhere, took):
            producer = self.producer()
            producer.begin_transaction()
            self.write(producer, topic, LARGE, 100)
            began = time.perf_counter()
            producer.commit_transaction(SECONDS)
            ended = time.perf_counter()
            time.sleep(0.2)  # the small ones that the commit may have held up
        before = max(took_ms for at, took_ms in took if at < began)
        meanwhile = max(took_ms for at, took_ms in took if at >= began - 0.1)
        return (ended - began) * 1e3, before, meanwhile

    @contextmanager
    def _beside(self, producer: Producer, topic: str, took: list[tuple[float, float]]) -> Iterator[None]:
        stops = threading.Event()

        def work() -> None:
            while not stops.wait(0.005):
                began = time.perf_counter()
                producer.begin_transaction()
                producer.produce(topic, bytes(100), partition=0)
                producer.commit_transaction(SECONDS)
                took.append((began, (time.perf_counter() - began) * 1e3))

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stops.set()
            thread.join()

    def readers(self, topic: str) -> float:
        """Return the milliseconds from a commit to its reader, at the worst, beside a transaction that is open."""
        holding, producer, consumer = self.producer(), self.producer(), self.consumer(topic)
        holding.begin_transaction()
        self.write(holding, topic, 1, 100)
        worst, ends = 0.0, time.perf_counter() + OPEN_S
        began = ends
        while time.perf_counter() < ends:
            began = time.perf_counter()
            producer.begin_transaction()
            producer.produce(topic, bytes(100), partition=0)
            producer.commit_transaction(SECONDS)
            if consumer.poll(max(0.0, ends - time.perf_counter())) is None:
                break
            worst = max(worst, time.perf_counter() - began)
        holding.abort_transaction(SECONDS)
        if not worst:
            assert consumer.poll(SECONDS) is not None
            worst = time.perf_counter() - began
        consumer.close()
        return worst * 1e3


def measured(bench: Bench, turns: int, case: Callable[[str], Sequence[float]]) -> dict[str, list[Sequence[float]]]:
    """Do a case on a topic of either kind, by turns."""
    found: dict[str, list[Sequence[float]]] = {kind: [] for kind in KINDS}
    for turn in range(turns):
        for kind in KINDS if turn % 2 == 0 else reversed(KINDS):
            found[kind].append(case(bench.topic(kind)))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sidecar", description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    turns: int = parser.parse_args(arguments).turns
    with tempfile.TemporaryDirectory() as folder:
        (port,) = free_ports(1)
        command = [sys.executable, "-m", "exacta.cli", "serve", "--data", f"{folder}/data"]
        command += ["--listen", f"{HOST}:{port}"]
        with serving(command, Path(folder) / "log") as server:
            server.wait_until(lambda: accepts_connections(HOST, port), timeout_s=SECONDS)
            bench = Bench(f"{HOST}:{port}")
            cases: list[tuple[tuple[str, ...], Callable[[str], Sequence[float]]]] = [
                (("one producer, transactions/s",), lambda topic: [bench.transactions(topic, 1)]),
                ((f"{MANY} producers, transactions/s",), lambda topic: [bench.transactions(topic, MANY)]),
                (("bulk in transactions, written MB/s", "the same, read MB/s"), bench.bulk),
                (
                    (
                        f"one transaction of {LARGE:,} messages, its commit, ms",
                        "others while it is written, at the worst, ms",
                        "others at its commit, at the worst, ms",
                    ),
                    bench.large,
                ),
                (
                    (f"a reader beside a transaction that is open for {OPEN_S:.0f} s, at the worst, ms",),
                    lambda topic: [bench.readers(topic)],
                ),
            ]
            print("| | marker topic | sidecar topic |\n|---|---|---|", flush=True)
            for names, case in cases:
                found = measured(bench, turns, case)
                for number, name in enumerate(names):
                    cells = [with_range([float(each[number]) for each in found[kind]]) for kind in KINDS]
                    print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
