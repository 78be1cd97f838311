"""Consumers whose clients do not read: nobody else waits for them, and no memory fills."""

import pytest

from tests.pulsar.by_hand import Broker, broker_by_hand
from tests.pulsar.consuming import ConsumerClient, produce, producer_of

broker = pytest.fixture(broker_by_hand)


def test_a_client_that_does_not_read_holds_up_nobody_and_fills_no_memory(broker: Broker) -> None:
    slow = ConsumerClient(broker, subscription="slow", permits=0)
    quick = ConsumerClient(broker, subscription="quick")
    producer = producer_of(broker)
    slow.client.reads = False
    slow.permit(1000)
    large = b"x" * 100_000
    for _ in range(100):
        produce(producer, large)
    assert len(quick.values()) == 100
    assert len(slow.client.untaken) < 1_000_000
    taken: list[bytes] = []
    while slow.client.untaken:
        slow.client.read()
        broker.settle()
        taken += slow.values()
    assert taken == [large] * 100


def test_a_client_that_leaves_with_much_unread_gives_it_back(broker: Broker) -> None:
    slow = ConsumerClient(broker, permits=0)
    slow.client.reads = False
    slow.permit(1000)
    producer = producer_of(broker)
    for _ in range(20):
        produce(producer, b"x" * 100_000)
    slow.client.vanish()
    broker.settle()
    assert len(ConsumerClient(broker).values()) == 20


def test_consumers_wait_while_the_answers_of_all_connections_take_too_much_memory() -> None:
    broker = Broker(queued_max_response_bytes=200_000)
    slow = ConsumerClient(broker, subscription="slow", permits=0)
    quick = ConsumerClient(broker, subscription="quick")
    producer = producer_of(broker)
    slow.client.reads = False
    slow.permit(1000)
    large = b"x" * 50_000
    got: list[bytes] = []
    for _ in range(40):
        produce(producer, large)
        got += quick.values()
    assert broker.context.memory.answers.used_bytes < 600_000
    while slow.client.untaken:
        slow.client.read(100_000)
        broker.settle()
        got += quick.values()
    assert got == [large] * 40
    assert slow.values() == [large] * 40
    broker.end()
