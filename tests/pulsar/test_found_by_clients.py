"""The smallest tests of what Pulsar's own clients have found (`tests/pulsar_clients`)."""

from typing import Any

import pytest

from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.by_hand import Broker, broker_by_hand
from tests.pulsar.consuming import EXCLUSIVE, TYPES, ConsumerClient, message_id, produce, producer_of

broker = pytest.fixture(broker_by_hand)


def test_a_position_behind_the_last_message_is_told_as_the_last_message(broker: Broker) -> None:
    consumer = ConsumerClient(broker, EXCLUSIVE)
    transaction = consumer.begin()
    produce(producer_of(broker), b"a", transaction=transaction)
    consumer.end(transaction)
    latest = ConsumerClient(
        broker, EXCLUSIVE, subscription="reader", durable=False, initial_position=pb.CommandSubscribe.Latest
    )
    answer = latest.last_message()
    assert (answer.last_message_id.entry_id, answer.consumer_mark_delete_position.entry_id) == (0, 0), "no marker"


@pytest.mark.parametrize("ack_sets", [[()], [(0b100,), ()]], ids=["whole", "one by one"])
@pytest.mark.parametrize("kind", TYPES)
def test_an_ack_means_no_message_that_its_consumer_has_not_got(broker: Broker, kind: Any, ack_sets: Any) -> None:
    first = ConsumerClient(broker, kind)
    produce(producer_of(broker), (b"a", b"b", b"c"))
    first.pushed()
    transaction = first.begin()
    first.acknowledge(message_id(0, 0, 0b101), transaction=transaction)
    first.ask(pb.CommandCloseConsumer(consumer_id=1, request_id=2))
    second = ConsumerClient(broker, kind)
    assert second.values() == [b"a", b"c"]
    for words in ack_sets:  # the client for Java takes b for acknowledged
        second.acknowledge(message_id(0, 0, *words))
    first.abort(transaction)
    assert second.values() == [b"b"]
    second.acknowledge(message_id(0, 0))
    second.redeliver()
    assert second.values() == []
