"""A bit flips in a file under a running broker, and librdkafka reads: every place is swept in `tests/engine`."""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import exacta
from exacta.engine.fetch import Fetcher
from exacta.ports.log import FetchRequest

RECORDS = 10
VALUES = [b"number %03d" % number for number in range(12)]


def flip(data: Path, content: bytes) -> None:
    """Flip a bit of the one place where this lies."""
    [(path, at)] = [(path, at) for path in data.rglob("*.log") if (at := path.read_bytes().find(content)) >= 0]
    flip_at(path, at)


def flip_at(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes((byte ^ 1,)))


def test_a_reader_gets_nothing_altered_and_goes_on_when_it_is_put_right(caplog: pytest.LogCaptureFixture):
    with exacta.Broker(num_partitions=2) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
        for number in range(RECORDS):
            for partition in (0, 1):
                producer.produce("t", b"number %d in %d" % (number, partition), partition=partition)
                assert producer.flush(30) == 0
        flip(broker.data, b"number 4 in 1")
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "fetch.error.backoff.ms": 10}
        )
        consumer.assign([TopicPartition("t", partition, 0) for partition in (0, 1)])
        got: dict[int, list[bytes]] = {0: [], 1: []}

        def read_until(zero: int, one: int) -> None:
            deadline = time.monotonic() + 30
            while [len(got[0]), len(got[1])] != [zero, one] or "t-1 cannot be read from offset 4" not in caplog.text:
                assert time.monotonic() < deadline, got
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    got[message.partition()].append(message.value())

        read_until(RECORDS, 4)
        flip(broker.data, b"oumber 4 in 1")
        read_until(RECORDS, RECORDS)
        consumer.close()
    assert got == {partition: [b"number %d in %d" % (n, partition) for n in range(RECORDS)] for partition in (0, 1)}


def first_index(servers: str, data: Path) -> Path:
    """Write more than a segment of a megabyte holds; wait until its index is there."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for value in VALUES:
        producer.produce("t", value + bytes(200_000))
        assert producer.flush(30) == 0
    deadline = time.monotonic() + 30
    while not (indexes := sorted(data.rglob("*.index"))):
        assert time.monotonic() < deadline, "no index is written"
        time.sleep(0.01)
    return indexes[0]


@contextlib.contextmanager
def serving(data: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `exacta serve`, whose segments are small; yield it, and where it listens."""
    command = [sys.executable, "-m", "exacta.cli", "serve", "--data", str(data), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, "--set", "log.segment.bytes=1048576"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().split("listening on ")[1].split(",")[0]
    finally:
        process.terminate()
        process.communicate(timeout=30)


def consumed(servers: str, process: subprocess.Popen[str], count: int) -> list[bytes]:
    """Read from the beginning, until there are this many or the server has ended."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "log_level": 0})
    consumer.assign([TopicPartition("t", 0, 0)])
    got: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(got) < count and process.poll() is None:
        assert time.monotonic() < deadline, got
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            got.append(message.value()[:10])
    consumer.close()
    return got


def test_by_an_altered_index_the_server_stops_and_the_next_start_makes_it_anew(tmp_path: Path):
    with serving(tmp_path) as (process, servers):
        index = first_index(servers, tmp_path)
        assert consumed(servers, process, len(VALUES)) == VALUES
        flip_at(index, 60)
        assert consumed(servers, process, len(VALUES)) == []
        errors = process.communicate(timeout=30)[1].splitlines()
        assert process.returncode == 1
        assert f"{index.name} is damaged: start again, and it is made again" in errors[-1]
    with serving(tmp_path) as (process, servers):
        assert consumed(servers, process, len(VALUES)) == VALUES


def test_an_embedded_broker_that_stops_over_an_altered_index_can_be_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    waits = threading.Event()
    fetch = Fetcher.fetch

    def noted(self: Fetcher, request: FetchRequest, done: Any) -> None:
        fetch(self, request, done)
        if self._by_key:
            waits.set()

    monkeypatch.setattr(Fetcher, "fetch", noted)
    with exacta.Broker(tmp_path, config={"log.segment.bytes": 1 << 20}) as broker:
        index = first_index(broker.bootstrap_servers, tmp_path)
        # A long poll that waits for more than there is makes the stop look into the index.
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "g",
                "log_level": 0,
                "fetch.min.bytes": 90_000_000,
                "fetch.wait.max.ms": 60_000,
                "fetch.max.bytes": 100_000_000,
                "max.partition.fetch.bytes": 100_000_000,
                "socket.timeout.ms": 120_000,
            }
        )
        consumer.assign([TopicPartition("t", 0, 0)])
        consumer.poll(0.01)
        assert waits.wait(30), "no fetch waits"
        flip_at(index, 60)
    broker.start()
    consumer.close()
    broker.stop()
