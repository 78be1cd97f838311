"""Every answer that brings no event of its own passes `Log.confirm` (decision 0063), whatever the command.

The log here confirms nothing until it is let (`tests/front/holding.py`). There are a topic `t` with a producer (1) and
a consumer (1), and no other topic.
"""

from typing import Any

import pytest

from exacta.core.commands import Command, CreatePartitions, CreateTopic
from exacta.core.ids import PartitionId
from exacta.core.log.staging import FIRST_PROVISIONAL_OFFSET
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.message_ids import message_id
from exacta.pulsar.provisional_ids import entry_id
from tests.front.holding import Holding
from tests.pulsar.by_hand import Broker

HERE, NOWHERE = "t", "nowhere"
STAGED = message_id(PartitionId(0), entry_id(FIRST_PROVISIONAL_OFFSET))
"""A provisional id of a message that is not there."""

ASKED = {
    "producer": pb.CommandProducer(topic=HERE, producer_id=2, request_id=9),
    "producer nowhere": pb.CommandProducer(topic=NOWHERE, producer_id=2, request_id=9),
    "producer, taken": pb.CommandProducer(topic=HERE, producer_id=2, request_id=9, producer_name="p"),
    "subscribe nowhere": pb.CommandSubscribe(
        topic=NOWHERE, subscription="s", sub_type=pb.CommandSubscribe.Shared, consumer_id=2, request_id=9
    ),
    "subscribe once more": pb.CommandSubscribe(
        topic=HERE, subscription="s", sub_type=pb.CommandSubscribe.Shared, consumer_id=1, request_id=9
    ),
    "subscribe from a provisional id": pb.CommandSubscribe(
        topic=HERE,
        subscription="r",
        sub_type=pb.CommandSubscribe.Exclusive,
        consumer_id=2,
        request_id=9,
        start_message_id=STAGED,
    ),
    "acknowledge a provisional id": pb.CommandAck(
        consumer_id=1, ack_type=pb.CommandAck.Individual, message_id=[STAGED], request_id=9
    ),
    "acknowledge in a transaction": pb.CommandAck(
        consumer_id=1,
        ack_type=pb.CommandAck.Individual,
        message_id=[pb.MessageIdData(ledger_id=0, entry_id=7)],
        request_id=9,
        txnid_least_bits=1,
        txnid_most_bits=0,
    ),
    "seek to a provisional id": pb.CommandSeek(consumer_id=1, request_id=9, message_id=STAGED),
    "partitions": pb.CommandPartitionedTopicMetadata(topic=HERE, request_id=9),
    "partitions nowhere": pb.CommandPartitionedTopicMetadata(
        topic=NOWHERE, request_id=9, metadata_auto_creation_enabled=False
    ),
    "consumer stats": pb.CommandConsumerStats(consumer_id=1, request_id=9),
    "last message": pb.CommandGetLastMessageId(consumer_id=1, request_id=9),
    "topics": pb.CommandGetTopicsOfNamespace(namespace="public/default", request_id=9),
    "close producer": pb.CommandCloseProducer(producer_id=1, request_id=9),
    "close consumer": pb.CommandCloseConsumer(consumer_id=1, request_id=9),
    "transaction goes nowhere": pb.CommandAddPartitionToTxn(request_id=9, txnid_least_bits=1, partitions=[NOWHERE]),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_an_answer_without_an_event_waits_until_the_log_confirms_it(
    asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    holding = Holding(monkeypatch)
    broker = Broker(auto_create_topics_enable=False)
    client = broker.connect()
    broker.engine.submit((CreateTopic(topic=HERE, topic_id=bytes(16), partition_count=1),), lambda answers: None)
    broker.settle()
    producer = pb.CommandProducer(
        topic=HERE, producer_id=1, request_id=1, producer_name="p", user_provided_producer_name=True
    )
    subscribe = pb.CommandSubscribe(
        topic=HERE, subscription="s", sub_type=pb.CommandSubscribe.Shared, consumer_id=1, request_id=2
    )
    assert isinstance(client.ask(producer), pb.CommandProducerSuccess)
    assert isinstance(client.ask(subscribe), pb.CommandSuccess)

    holding.held = []
    client.send(asked)
    broker.settle()
    assert not client.answers()
    holding.release(broker.engine)
    broker.settle()
    assert client.answers()
    broker.end()


def test_the_number_of_partitions_is_told_once_it_is_durable() -> None:
    """It is looked at after the wait for the topic, and it may have grown meanwhile."""
    broker = Broker()
    client = broker.connect()

    def submit(command: Command) -> None:
        broker.engine.submit((command,), lambda answers: None)
        broker.settle()

    submit(CreateTopic(topic=HERE, topic_id=bytes(16), partition_count=1))
    broker.held_syncs = []
    submit(CreateTopic(topic="other", topic_id=bytes([1]) * 16, partition_count=1))
    client.send(ASKED["partitions"])
    broker.settle()
    submit(CreatePartitions(topic=HERE, total_count=3))
    broker.loop.ready.append(broker.held_syncs.pop(0))
    broker.settle()
    assert not client.answers()
    broker.release_syncs()
    broker.settle()
    assert [each.partitions for each in client.answers()] == [3]
    broker.end()
