"""Consumers that are opened while the disk takes its time: what comes meanwhile, and what is left when it is done."""

from typing import Any

import pytest

from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.by_hand import Broker, broker_by_hand, send_frame
from tests.pulsar.consuming import EXCLUSIVE, FAILOVER, TYPES, ConsumerClient, producer_of

broker = pytest.fixture(broker_by_hand)


def subscribes(broker: Broker, *after: Any) -> ConsumerClient:
    """Send a SUBSCRIBE that waits for the disk, with other commands behind it."""
    consumer, producer = ConsumerClient(broker, topic="elsewhere", permits=0), producer_of(broker)
    consumer.client.ask(pb.CommandCloseConsumer(consumer_id=1, request_id=2))
    broker.held_syncs = []
    producer.send_bytes(send_frame(b"x"))
    broker.settle()
    consumer.client.send(subscribe(3), *after)
    broker.settle()
    return consumer


def subscribe(request_id: int) -> Any:
    return pb.CommandSubscribe(topic="t", subscription="s", sub_type=EXCLUSIVE, consumer_id=1, request_id=request_id)


def errors_after_the_syncs(broker: Broker, consumer: ConsumerClient) -> dict[int, Any]:
    broker.release_syncs()
    broker.settle()
    answers = consumer.client.answers()
    return {each.request_id: each.error if isinstance(each, pb.CommandError) else None for each in answers}


def test_a_consumer_that_is_closed_before_it_is_open_is_not_opened(broker: Broker) -> None:
    consumer = subscribes(broker, pb.CommandCloseConsumer(consumer_id=1, request_id=4))
    assert errors_after_the_syncs(broker, consumer) == {3: pb.ServerError.ServiceNotReady, 4: None}
    assert isinstance(ConsumerClient(broker, EXCLUSIVE).opened, pb.CommandSuccess)


def test_a_connection_that_ends_before_its_consumer_is_open_leaves_none(broker: Broker) -> None:
    consumer = subscribes(broker)
    consumer.client.vanish()
    broker.settle()
    broker.release_syncs()
    broker.settle()
    assert isinstance(ConsumerClient(broker, EXCLUSIVE).opened, pb.CommandSuccess)


def test_one_number_is_opened_once_at_a_time(broker: Broker) -> None:
    consumer = subscribes(broker, subscribe(4))
    assert errors_after_the_syncs(broker, consumer) == {3: None, 4: pb.ServerError.ServiceNotReady}
    consumer.client.vanish()
    broker.settle()
    assert isinstance(ConsumerClient(broker, EXCLUSIVE).opened, pb.CommandSuccess)


@pytest.mark.parametrize("kind", TYPES)
def test_only_consumers_in_order_read_compacted_messages(broker: Broker, kind: int) -> None:
    answer = ConsumerClient(broker, kind, permits=0, read_compacted=True).opened
    if kind in (EXCLUSIVE, FAILOVER):
        assert isinstance(answer, pb.CommandSuccess)
    else:
        assert answer.error == pb.ServerError.NotAllowedError
        assert answer.message == "readCompacted only allowed on failover or exclusive subscriptions"
