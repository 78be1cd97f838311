"""A bit flips in the file under a running broker, and librdkafka reads: every place is swept in `tests/engine`."""

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import exacta

RECORDS = 10


def flip(data: Path, content: bytes) -> None:
    """Flip a bit of the one place where this lies."""
    [(path, at)] = [(path, at) for path in data.rglob("*.log") if (at := path.read_bytes().find(content)) >= 0]
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
