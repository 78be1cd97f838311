"""Reading the other protocol's messages beside reading one's own, and joint transactions beside plain ones, by turns.

`make bench-one-log`. One broker runs. One topic is written by Kafka's client and one by Pulsar's. Each turn reads both
topics by both clients, in an order that alternates. Each figure is the median of the turns, with its range.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pulsar
from confluent_kafka import Consumer, Producer, TopicPartition

import exacta
from benchmarks.processes import accepts_connections, free_ports, serving, usage

HOST = "127.0.0.1"
SECONDS = 60
LOADS = {"100 B": (100, 200_000), "1 kB": (1000, 60_000)}
"""The bytes of a message, and the number of messages that are read."""
TRANSACTIONS = 200


class Bench:
    """One broker and its clients."""

    def __init__(self, process: psutil.Process, kafka: str, url: str) -> None:
        self._process = process
        self._kafka = kafka
        self._client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))

    def timed(self, read: Callable[[str, int], int], topic: str, count: int) -> tuple[float, float]:
        """Read this many messages; return the MB/s, and the microseconds of the broker's processor for each message."""
        before, began = usage(self._process), time.perf_counter()
        size = read(topic, count)
        took, after = time.perf_counter() - began, usage(self._process)
        assert before is not None
        assert after is not None
        return size / took / 1e6, (after.cpu_s - before.cpu_s) * 1e6 / count

    def write_by_kafka(self, topic: str, length: int, count: int) -> None:
        """Produce this many records, in batches."""
        producer = Producer(
            {"bootstrap.servers": self._kafka, "linger.ms": 20, "queue.buffering.max.messages": count + 1}
        )
        for _ in range(count):
            producer.produce(topic, bytes(length), partition=0)
        assert producer.flush(SECONDS) == 0

    def write_by_pulsar(self, topic: str, length: int, count: int) -> None:
        """Produce this many messages, in batches."""
        producer = self._client.create_producer(topic, batching_enabled=True, block_if_queue_full=True)
        for _ in range(count):
            producer.send_async(bytes(length), lambda result, message_id: None)
        producer.flush()
        producer.close()

    def read_by_kafka(self, topic: str, count: int) -> int:
        """Read this many records; return their bytes."""
        consumer = Consumer({"bootstrap.servers": self._kafka, "group.id": "g", "isolation.level": "read_committed"})
        consumer.assign([TopicPartition(topic, 0, 0)])
        size = found = 0
        while found < count:
            for message in consumer.consume(min(10_000, count - found), SECONDS):
                assert message.error() is None, message.error()
                size += len(message.value())
                found += 1
        consumer.close()
        return size

    def read_by_pulsar(self, topic: str, count: int) -> int:
        """Read this many messages; return their bytes."""
        reader = self._client.create_reader(topic, pulsar.MessageId.earliest, receiver_queue_size=10_000)
        size = sum(len(reader.read_next(SECONDS * 1000).data()) for _ in range(count))
        reader.close()
        return size

    def transactions(self, name: str, *, joint: bool) -> float:
        """Return how many transactions a second commit. Each has one Kafka record; a joint one is also joined."""
        producer = Producer({"bootstrap.servers": self._kafka, "transactional.id": name, "linger.ms": 0})
        producer.init_transactions(SECONDS)
        began = time.perf_counter()
        for _ in range(TRANSACTIONS):
            producer.begin_transaction()
            producer.produce(name, b"x" * 100, partition=0)
            producer.flush(SECONDS)
            if joint:
                exacta.join_transaction(self._kafka, name)
            producer.commit_transaction(SECONDS)
        return TRANSACTIONS / (time.perf_counter() - began)


def with_range(values: Sequence[float]) -> str:
    """Return a median with its range, as text."""
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.one_log", description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    turns: int = parser.parse_args(arguments).turns
    with tempfile.TemporaryDirectory() as folder:
        first, second = free_ports(2)
        kafka, pulsars = f"{HOST}:{first}", f"{HOST}:{second}"
        command = [sys.executable, "-m", "exacta.cli", "serve", "--data", f"{folder}/data"]
        command += ["--listen", kafka, "--pulsar-listen", pulsars]
        with serving(command, Path(folder) / "log") as server:
            server.wait_until(
                lambda: accepts_connections(HOST, first) and accepts_connections(HOST, second), timeout_s=SECONDS
            )
            bench = Bench(server.process, kafka, f"pulsar://{pulsars}")
            _reading(bench, turns)
            _joining(bench, turns)


def _reading(bench: Bench, turns: int) -> None:
    print("| messages | written by | read by | MB/s | broker's µs a message |\n|---|---|---|---|---|")
    for name, (length, count) in LOADS.items():
        bench.write_by_kafka(f"kafka-{length}", length, count)
        bench.write_by_pulsar(f"pulsar-{length}", length, count)
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for turn in range(turns):
            pairs = [(writer, reader) for reader in ("Kafka", "Pulsar") for writer in ("Kafka", "Pulsar")]
            for writer, reader in pairs if turn % 2 == 0 else reversed(pairs):
                read = bench.read_by_kafka if reader == "Kafka" else bench.read_by_pulsar
                found.setdefault((writer, reader), []).append(bench.timed(read, f"{writer.lower()}-{length}", count))
        for (writer, reader), values in sorted(found.items(), key=lambda each: each[0][1]):
            speeds, cpu = zip(*values, strict=True)
            print(f"| {name} | {writer} | {reader} | {with_range(speeds)} | {with_range(cpu)} |")


def _joining(bench: Bench, turns: int) -> None:
    plain, joint = [], []
    for _ in range(turns):
        plain.append(bench.transactions("plain", joint=False))
        joint.append(bench.transactions("joint", joint=True))
    print(f"\ntransactions a second: plain {with_range(plain)}, joint {with_range(joint)}")


if __name__ == "__main__":
    main()
