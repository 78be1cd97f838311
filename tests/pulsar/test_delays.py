"""Delayed messages with Pulsar's own client, unmodified: later ones come first, unless delivery is in order."""

from datetime import timedelta

import pulsar
import pytest

import exacta
from tests.pulsar.wire import client

PATIENCE_MS = 20_000
DELAY = timedelta(milliseconds=700)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pulsar.ConsumerType.Shared, [b"at once", b"delayed"]),
        (pulsar.ConsumerType.KeyShared, [b"at once", b"delayed"]),
        (pulsar.ConsumerType.Exclusive, [b"delayed", b"at once"]),
        (pulsar.ConsumerType.Failover, [b"delayed", b"at once"]),
    ],
)
def test_a_delayed_message_comes_later_unless_delivery_is_in_order(
    broker: exacta.Broker, kind: pulsar.ConsumerType, expected: list[bytes]
) -> None:
    with client(broker.pulsar_url) as opened:
        consumer = opened.subscribe("orders", "s", consumer_type=kind)
        producer = opened.create_producer("orders", batching_enabled=False)
        producer.send(b"delayed", deliver_after=DELAY)
        producer.send(b"at once")
        got = []
        for _ in expected:
            message = consumer.receive(PATIENCE_MS)
            got.append(message.data())
            consumer.acknowledge(message)
    assert got == expected
