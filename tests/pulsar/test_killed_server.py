"""`exacta serve` is killed while Pulsar's own client produces: every confirmed message lies in the log once."""

import threading
from pathlib import Path

import pulsar

from tests.conformance.brokers import free_port
from tests.pulsar.serving import Served
from tests.pulsar.wire import client, stored

KILLS = 3
CONFIRMED_BETWEEN = 200


def test_every_confirmed_message_is_found_once(tmp_path: Path) -> None:
    server = Served(tmp_path / "data", tmp_path / "log", free_port(), free_port())
    server.start()
    confirmed: set[bytes] = set()
    failed: list[pulsar.Result] = []
    changed = threading.Condition()
    sent = 0

    def done(value: bytes, result: pulsar.Result) -> None:
        with changed:
            if result == pulsar.Result.Ok:
                confirmed.add(value)
            else:
                failed.append(result)
            changed.notify()

    def produce(producer: pulsar.Producer, upto: int) -> None:
        """Send on, so that some messages are always on their way, until so many are confirmed."""
        nonlocal sent
        while len(confirmed) < upto and not failed:
            value = b"%d" % sent
            sent += 1
            producer.send_async(value, lambda result, _, value=value: done(value, result))

    try:
        with client(server.url) as opened:
            producer = opened.create_producer(
                "orders",
                producer_name="p",
                batching_enabled=True,
                batching_max_messages=10,
                max_pending_messages=100,
                block_if_queue_full=True,
                send_timeout_millis=0,
            )
            for kill in range(KILLS):
                produce(producer, (kill + 1) * CONFIRMED_BETWEEN)
                server.restart_killed()
            producer.flush()
            producer.close()
    finally:
        server.kill()
    assert not failed
    assert len(confirmed) == sent
    messages = [message for _, entry in stored(tmp_path / "data", "orders").entries for message in _values(entry)]
    assert messages == [b"%d" % number for number in range(sent)]


def _values(entry: object) -> list[bytes]:
    from exacta.protocol.pulsar.entries import Entry, walk_batch

    assert isinstance(entry, Entry)
    if not entry.is_batch:
        return [bytes(entry.payload)]
    return [bytes(each.payload) for each in walk_batch(entry.payload, entry.message_count)]
