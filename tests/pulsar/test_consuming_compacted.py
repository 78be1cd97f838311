"""Consumers get what compaction has left of entries, also if it changes them after they were delivered."""

from typing import Any

import pytest

from exacta.core.ids import Offset, PartitionId
from exacta.core.state.subscription import Subscription
from exacta.ports.compaction import Rules
from exacta.ports.journal import CompactionOrder
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.compression import compress
from exacta.protocol.pulsar.entries import build_batch, build_entry
from exacta.protocol.pulsar.frames import build_entry_frame
from exacta.records.compaction import compaction
from tests.pulsar.by_hand import Broker, Client, broker_by_hand
from tests.pulsar.consuming import (
    EXCLUSIVE,
    FAILOVER,
    KEY_SHARED,
    SHARED,
    TYPES,
    ConsumerClient,
    message_id,
    produce,
    producer_of,
)

broker = pytest.fixture(broker_by_hand)

NAMES = [pb.CommandSubscribe.SubType.Name(kind) for kind in TYPES]
IN_ORDER = [EXCLUSIVE, FAILOVER]
NOTED = [SHARED, KEY_SHARED]


def send(client: Client, *messages: str, codec: pb.CompressionType = pb.CompressionType.NONE) -> None:
    """Send one batch; a message is its key, one letter, and its value."""
    parts = [(pb.SingleMessageMetadata(partition_key=each[:1].encode()), each[1:].encode()) for each in messages]
    payload = build_batch(parts)
    metadata = pb.MessageMetadata(
        producer_name="p", sequence_id=0, publish_time=1_700_000_000_000, num_messages_in_batch=len(messages)
    )
    if codec != pb.CompressionType.NONE:
        metadata.compression, metadata.uncompressed_size = codec, len(payload)
        payload = compress(codec, payload)
    command = pb.CommandSend(producer_id=0, sequence_id=0, num_messages=len(messages))
    client.send_bytes(b"".join(map(bytes, build_entry_frame(command, build_entry(metadata, payload)))))
    client._broker.settle()
    [receipt] = client.answers()
    assert isinstance(receipt, pb.CommandSendReceipt)


def compact(broker: Broker, client: Client, now_ms: int = 0, retention_ms: int = 0) -> None:
    """Compact all that is there; a message of the key "z" stands behind it then."""
    broker.journal.seal()
    send(client, "zend")
    rules = Rules(now_ms=now_ms, delete_retention_ms=retention_ms)
    done: list[Any] = []
    broker.journal.compact([CompactionOrder(0, 1_000, rules)], {0: 0}, compaction, done.append)
    broker.settle()
    assert done == [None]


def subscription(broker: Broker) -> Subscription:
    found: list[Subscription] = []

    def look(state: Any, now_ms: int) -> None:
        found.append(state.partitions[PartitionId(0)].subscriptions["s"])

    broker.engine.read(look, lambda _: None)
    return found[0]


def is_through(broker: Broker) -> bool:
    """Return whether everything is acknowledged, and no run is left beside."""
    found = subscription(broker)
    return not found.acknowledged and found.position >= broker.journal.find(0, 0, 1_000, 1_000_000)[-1].last_offset


@pytest.mark.parametrize("codec", [pb.CompressionType.NONE, pb.CompressionType.LZ4])
@pytest.mark.parametrize("kind", TYPES, ids=NAMES)
def test_what_is_gone_is_left_out_and_takes_no_permits(broker: Broker, kind: Any, codec: pb.CompressionType) -> None:
    """Clients for Python and Go would hand holes to their users: only the ack set hides them."""
    producer = producer_of(broker)
    send(producer, "a1", "b1", "c1", "a2", "b2", codec=codec)
    send(producer, "b3", "c3", codec=codec)
    send(producer, "a4", codec=codec)
    compact(broker, producer)
    consumer = ConsumerClient(broker, kind, permits=2)
    [pushed] = consumer.pushed()
    assert (pushed.offset, list(pushed.command.ack_set)) == (5, [])
    consumer.permit(2)
    assert consumer.values() == [b"4", b"end"]


@pytest.mark.parametrize("kind", TYPES, ids=NAMES)
@pytest.mark.parametrize("by", ["whole", "part", "cumulative", "transaction"])
def test_what_is_left_of_an_entry_is_acknowledged_as_all_of_it(broker: Broker, kind: Any, by: str) -> None:
    if by == "cumulative" and kind in NOTED:
        return
    producer = producer_of(broker)
    send(producer, "a1", "b1", "c1", "a2", "d1", "b2")
    send(producer, "b3", "d3")
    compact(broker, producer)
    consumer = ConsumerClient(broker, kind, permits=2)
    [first, *_] = consumer.pushed()
    assert (first.left, list(first.command.ack_set)) == ([b"1", b"2"], [0b001100])
    transaction = consumer.begin() if by == "transaction" else None
    of_first = message_id(0, 0) if by == "whole" else message_id(0, 0, 0b110000 if by == "cumulative" else 0b110011)
    of_first.batch_size = 6
    answer = consumer.acknowledge(of_first, cumulative=by == "cumulative", transaction=transaction)
    assert not answer.HasField("error"), answer.message
    if transaction is not None:
        consumer.end(transaction)
    assert (subscription(broker).position, subscription(broker).acknowledged) == (6, [])


@pytest.mark.parametrize("kind", TYPES, ids=NAMES)
@pytest.mark.parametrize("by", ["individual", "cumulative", "transaction", "soon"])
def test_entries_that_are_gone_since_they_were_delivered_are_acknowledged(broker: Broker, kind: Any, by: str) -> None:
    if by == "cumulative" and kind in NOTED:
        return
    producer = producer_of(broker)
    send(producer, "a1", "b1")
    send(producer, "b2", "a2")
    send(producer, "a3", "b3")
    consumer = ConsumerClient(broker, kind)
    ids = [each.command.message_id for each in consumer.pushed()]
    compact(broker, producer)
    ids += [each.command.message_id for each in consumer.pushed()]
    assert [each.entry_id for each in ids] == [0, 2, 4, 6]
    if by == "cumulative":
        assert not consumer.acknowledge(ids[1], cumulative=True).HasField("error")
        assert subscription(broker).position == 4
        ids = ids[2:]
    elif by == "transaction":
        for each in ids:
            each.batch_size = 1 if each is ids[-1] else 2
        transaction = consumer.begin()
        for each in ids:
            answer = consumer.acknowledge(each, transaction=transaction)
            assert not answer.HasField("error"), answer.message
        consumer.end(transaction)
        assert is_through(broker)
        return
    for each in ids:
        answer = consumer.acknowledge(each, request_id=None if by == "soon" else 7)
        assert answer is None or not answer.HasField("error")
    assert is_through(broker)


@pytest.mark.parametrize("kind", TYPES, ids=NAMES)
def test_in_a_transaction_the_messages_that_are_gone_are_acknowledged_one_by_one(broker: Broker, kind: Any) -> None:
    """The client for Go says the index of each message, and not how many its entry has."""
    producer = producer_of(broker)
    send(producer, "a1", "b1", "c1")
    send(producer, "b2", "a2")
    send(producer, "a3", "b3", "c3")
    consumer = ConsumerClient(broker, kind)
    assert len(consumer.pushed()) == 3
    compact(broker, producer)
    transaction = consumer.begin()
    for entry, count in ((0, 3), (3, 2), (5, 3)):
        for index in range(count):
            words = ((1 << count) - 1) & ~(1 << index)
            answer = consumer.acknowledge(message_id(0, entry, words), transaction=transaction)
            assert not answer.HasField("error"), answer.message
    assert consumer.acknowledge(message_id(0, 3, 0b01), transaction=transaction).HasField("error"), "twice"
    consumer.end(transaction)
    assert subscription(broker).position == 8


def test_a_client_that_acknowledges_what_is_before_a_batch_names_a_place_that_is_gone(broker: Broker) -> None:
    """Clients that acknowledge no parts of batches do so; the number is that before the batch's entry."""
    producer = producer_of(broker)
    send(producer, "a1", "b1")
    send(producer, "a2", "b2")
    consumer = ConsumerClient(broker, EXCLUSIVE)
    consumer.pushed()
    compact(broker, producer)
    consumer.acknowledge(message_id(0, 1), cumulative=True)
    assert subscription(broker).position == 2


@pytest.mark.parametrize("kind", NOTED, ids=["Shared", "Key_Shared"])
def test_what_is_given_back_and_gone_meanwhile_comes_no_more(broker: Broker, kind: Any) -> None:
    producer = producer_of(broker)
    send(producer, "a1", "b1")
    send(producer, "a2", "c2", "d2")
    consumer = ConsumerClient(broker, kind, permits=5)
    ids = [each.command.message_id for each in consumer.pushed()]
    send(producer, "a3", "b3", "d3")
    compact(broker, producer)
    consumer.redeliver(*ids)
    consumer.permit(1)
    [again] = consumer.pushed()
    assert (again.left, list(again.command.ack_set)) == ([b"2"], [0b010])
    consumer.permit(4)
    assert consumer.values() == [b"3", b"3", b"3", b"end"], "what was gone has taken no permits"
    consumer.acknowledge(again.command.message_id)
    assert subscription(broker).position == 5


@pytest.mark.parametrize("kind", IN_ORDER, ids=["Exclusive", "Failover"])
def test_an_ordered_subscription_passes_what_is_gone_when_it_begins_again(broker: Broker, kind: Any) -> None:
    producer = producer_of(broker)
    send(producer, "a1", "b1")
    send(producer, "a2", "c2", "d2")
    consumer = ConsumerClient(broker, kind)
    assert len(consumer.pushed()) == 2
    compact(broker, producer)
    consumer.pushed()
    consumer.redeliver()
    assert [each.left for each in consumer.pushed()] == [[b"1"], [b"2", b"2", b"2"], [b"end"]]
    assert subscription(broker).position == 1, "what is gone before the first message that is left is passed"


def test_the_last_message_is_the_last_that_is_left(broker: Broker) -> None:
    """A reader would wait for ever for one that is gone: here a tombstone whose time is over."""
    producer = producer_of(broker)
    send(producer, "a1", "b", "b")
    broker.journal.seal()
    consumer = ConsumerClient(broker, EXCLUSIVE, permits=0)
    aborted = consumer.begin()
    produce(producer, b"aborted", transaction=aborted)
    consumer.abort(aborted)
    found = consumer.last_message().last_message_id
    assert (found.entry_id, found.batch_index) == (0, 2)
    for now_ms in (0, 1):
        order = CompactionOrder(0, 3, Rules(now_ms=now_ms, delete_retention_ms=0))
        broker.journal.compact([order], {0: 0}, compaction, lambda _: None)
        broker.settle()
    found = consumer.last_message().last_message_id
    assert (found.entry_id, found.batch_index) == (0, 0)


def test_seek_to_a_message_that_is_gone_goes_on_behind_it(broker: Broker) -> None:
    producer = producer_of(broker)
    send(producer, "a1", "b1")
    send(producer, "c1")
    send(producer, "a2", "b2")
    compact(broker, producer)
    consumer = ConsumerClient(broker, EXCLUSIVE)
    consumer.pushed()
    consumer.client.send(pb.CommandSeek(consumer_id=1, request_id=3, message_id=message_id(0, 0)))
    broker.settle()
    assert [type(each) for each in consumer.told()] == [pb.CommandCloseConsumer, pb.CommandSuccess]
    assert subscription(broker).position == Offset(0)
    consumer.subscribe()
    assert consumer.values() == [b"1", b"2", b"2", b"end"]
