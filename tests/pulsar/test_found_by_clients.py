"""The smallest tests of what Pulsar's own clients have found (`tests/pulsar_clients`)."""

from collections.abc import Iterator

import pytest

from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.by_hand import Broker
from tests.pulsar.consuming import EXCLUSIVE, ConsumerClient, produce, producer_of


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker()
    yield made
    made.end()


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
