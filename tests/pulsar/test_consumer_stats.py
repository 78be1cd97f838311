"""CONSUMER_STATS: a client asks how its consumer stands (`getBrokerConsumerStats` of the client for C++)."""

import pytest

from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.by_hand import Broker, broker_by_hand
from tests.pulsar.consuming import EXCLUSIVE, SHARED, TYPES, ConsumerClient, message_id, produce, producer_of

broker = pytest.fixture(broker_by_hand)

STATS = pb.CommandConsumerStats(request_id=4, consumer_id=1)


@pytest.mark.parametrize("kind", TYPES)
def test_a_consumer_is_told_how_it_stands(broker: Broker, kind: int) -> None:
    producer = producer_of(broker)
    produce(producer, *[b"x"] * 5)
    consumer = ConsumerClient(broker, kind, permits=3, consumer_name="mine")
    consumer.pushed()
    consumer.acknowledge(message_id(0, 1))
    told = consumer.ask(STATS)
    assert (told.request_id, told.HasField("error_code")) == (4, False)
    assert (told.consumer_name, told.type) == ("mine", pb.CommandSubscribe.SubType.Name(kind))
    assert (told.available_permits, told.msg_backlog) == (0, 4)
    assert told.unacked_messages == (2 if kind in (SHARED, pb.CommandSubscribe.Key_Shared) else 0)
    assert not told.blocked_consumer_on_unacked_msgs
    assert told.address.startswith("/")
    assert told.connected_since == "2023-11-14T22:13:20.000Z"
    assert told.msg_rate_out == told.msg_throughput_out == told.msg_rate_redeliver == told.message_ack_rate == 0
    consumer.permit(10)
    consumer.pushed()
    assert consumer.ask(STATS).available_permits == 8


def test_the_backlog_are_the_messages_that_will_still_come(broker: Broker) -> None:
    """Neither markers nor aborted messages are among them, nor what an open transaction has written."""
    writer = ConsumerClient(broker, subscription="other", permits=0)
    producer = producer_of(broker)
    for action in (pb.COMMIT, pb.ABORT):
        transaction = writer.begin()
        produce(producer, b"x", (b"y", b"z"), transaction=transaction)
        writer.end(transaction, action)
    produce(producer, b"open", transaction=writer.begin())
    consumer = ConsumerClient(broker, EXCLUSIVE, permits=0)
    assert consumer.ask(STATS).msg_backlog == 3


def test_a_consumer_that_has_all_that_one_may_have_is_blocked(broker: Broker) -> None:
    consumer = ConsumerClient(broker, permits=100_000)
    produce(producer_of(broker), *[(b"",) * 1000] * 51)
    consumer.pushed()
    told = consumer.ask(STATS)
    assert (told.unacked_messages, told.blocked_consumer_on_unacked_msgs) == (50_000, True)


def test_a_consumer_that_is_not_open_is_refused_in_the_answer(broker: Broker) -> None:
    refused = broker.connect().ask(STATS)
    assert isinstance(refused, pb.CommandConsumerStatsResponse)
    assert (refused.request_id, refused.error_code) == (4, pb.ServerError.ConsumerNotFound)
    assert "not open" in refused.error_message
