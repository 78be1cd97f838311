"""Quotas by the command line and by real clients: over a restart, at a real broker, and for new connections."""

import socket
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

import exacta
from tests.cli.conftest import Commands
from tests.waiting import wait_until

RATE = 200_000


def run(broker: exacta.Broker, *words: str) -> str:
    return Commands(broker.bootstrap_servers)("quotas", *words)


def refused(broker: exacta.Broker, *words: str, code: int) -> str:
    return Commands(broker.bootstrap_servers).refused("quotas", *words, code=code)


def listed(broker: exacta.Broker) -> list[tuple[str | None, str | None, str | None, str, float]]:
    return [tuple(each.values()) for each in Commands(broker.bootstrap_servers).found("quotas", "list")]


def test_the_command_sets_lists_and_removes_quotas_which_a_restart_keeps(tmp_path: Path) -> None:
    with exacta.Broker(tmp_path) as broker:
        run(broker, "set", "producer_byte_rate=1048576", "request_percentage=12.5", "--user", "alice")
        run(broker, "set", "consumer_byte_rate=2048", "--user", "<default>", "--client-id", "app")
        run(broker, "set", "connection_creation_rate=100", "--ip", "10.0.0.1")
        expected = [
            (None, None, "10.0.0.1", "connection_creation_rate", 100.0),
            ("<default>", "app", None, "consumer_byte_rate", 2048.0),
            ("alice", None, None, "producer_byte_rate", 1048576.0),
            ("alice", None, None, "request_percentage", 12.5),
        ]
        assert sorted(listed(broker), key=str) == sorted(expected, key=str)
    with exacta.Broker(tmp_path) as broker:
        assert sorted(listed(broker), key=str) == sorted(expected, key=str)
        for _ in range(2):
            assert run(broker, "remove", "--user", "alice", "--yes") == "user alice has no quotas\n"
        assert len(listed(broker)) == 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("set", "producer_byte_rate=1"), 2),
        (("set", "bytes=1", "--user", "alice"), 2),
        (("set", "producer_byte_rate=much", "--user", "alice"), 2),
        (("set", "producer_byte_rate=1", "--user", "alice", "--ip", "10.0.0.1"), 2),
        (("set", "producer_byte_rate=0", "--user", "alice"), 1),
        (("set", "connection_creation_rate=1", "--user", "alice"), 1),
    ],
)
def test_a_wrong_quota_is_told_in_one_line(words: tuple[str, ...], code: int) -> None:
    with exacta.Broker() as broker:
        assert refused(broker, *words, code=code)


def test_librdkafka_writes_and_reads_at_its_rate_and_a_neighbour_is_not_slowed() -> None:
    seconds, value = 3.0, b"x" * 1_000
    with exacta.Broker() as broker:
        for name in ("producer_byte_rate", "consumer_byte_rate"):
            run(broker, "set", f"{name}={RATE}", "--client-id", "slow")
        common = {"bootstrap.servers": broker.bootstrap_servers}
        written = {"slow": 0, "free": 0}
        producers = {
            name: Producer(common | {"client.id": name, "linger.ms": 5, "batch.size": 20_000, "acks": "all"})
            for name in written
        }
        ends = time.monotonic() + seconds
        count = int(2 * RATE * seconds / len(value))
        for name, producer in producers.items():
            for _ in range(count):
                producer.produce(
                    name, value, on_delivery=lambda error, _, name=name: written.update({name: written[name] + 1})
                )
        while time.monotonic() < ends:
            for producer in producers.values():
                producer.poll(0.01)
        assert written["free"] == count, "as if there was no quota"
        assert written["slow"] * len(value) <= RATE * (seconds + 1) + 100_000
        assert written["slow"] * len(value) >= RATE * seconds * 0.7
        producers["slow"].purge()
        reader = Consumer(common | {"client.id": "slow", "group.id": "g", "auto.offset.reset": "earliest"})
        reader.subscribe(["free"])
        first = reader.poll(10.0)
        assert first is not None
        begun, got = time.monotonic(), 1
        while time.monotonic() < begun + seconds:
            got += len(reader.consume(100, 0.05))
        reader.close()
        assert got * len(value) <= RATE * (seconds + 1) + 200_000
        assert got * len(value) >= RATE * seconds * 0.7


def test_an_address_makes_connections_at_its_rate() -> None:
    with exacta.Broker() as broker:
        run(broker, "set", "connection_creation_rate=5", "--ip", "127.0.0.1")
        host, port = broker.bootstrap_servers.split(":")
        begun = time.monotonic()
        held = [socket.create_connection((host, int(port))) for _ in range(20)]
        for each in held:
            each.settimeout(0)

        def closed() -> int:
            return sum(_is_closed(each) for each in held)

        wait_until(lambda: closed() >= 13, 20)
        assert 0.1 < time.monotonic() - begun < 5, "they are closed after a while, so that their client waits"
        assert closed() <= 15
        for each in held:
            each.close()


def _is_closed(sock: socket.socket) -> bool:
    try:
        return sock.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
