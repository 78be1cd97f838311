"""Consumers, frame by frame: what is pushed to them, and what their commands do."""

from typing import Any

import pytest

from exacta.core.commands import CreateTopic, DeleteTopic
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.by_hand import Broker, broker_by_hand, send_frame
from tests.pulsar.consuming import (
    EARLIEST,
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


@pytest.mark.parametrize("kind", TYPES, ids=NAMES)
def test_entries_are_pushed_as_they_were_sent(broker: Broker, kind: Any) -> None:
    produce(producer_of(broker), b"one", (b"two", b"three"), b"four")
    consumer = ConsumerClient(broker, kind)
    pushed = consumer.pushed()
    assert [each.values for each in pushed] == [[b"one"], [b"two", b"three"], [b"four"]]
    assert [each.offset for each in pushed] == [0, 1, 3]
    assert {each.command.message_id.ledger_id for each in pushed} == {0}
    assert {each.command.message_id.partition for each in pushed} == {-1}
    assert {each.index for each in pushed} == {None}
    assert not any(each.command.ack_set for each in pushed)


def test_the_index_of_an_entry_is_for_clients_that_ask_for_it(broker: Broker) -> None:
    produce(producer_of(broker), b"one", (b"two", b"three"))
    consumer = ConsumerClient(broker, permits=0)
    consumer.client.connection.consumers.takes_broker_entries = True
    consumer.permit(10)
    assert [each.index for each in consumer.pushed()] == [0, 2]


def test_no_more_is_pushed_than_is_permitted_but_for_the_rest_of_an_entry(broker: Broker) -> None:
    produce(producer_of(broker), b"a", b"b", (b"c", b"d", b"e"), b"f", b"g")
    consumer = ConsumerClient(broker, permits=1)
    assert consumer.values() == [b"a"]
    consumer.permit(2)
    assert consumer.values() == [b"b", b"c", b"d", b"e"]
    consumer.permit(2)  # the entry has taken them before they came
    assert consumer.values() == []
    consumer.permit(1)
    assert consumer.values() == [b"f"]


@pytest.mark.parametrize("kind", TYPES, ids=NAMES)
def test_messages_of_an_entry_that_are_not_left_take_no_permits(broker: Broker, kind: Any) -> None:
    """Clients permit one message more for each that they have got, and none for those that the ack set leaves out."""
    produce(producer_of(broker), (b"a", b"b", b"c"), b"d", b"e")
    consumer = ConsumerClient(broker, kind, permits=3)
    assert consumer.values() == [b"a", b"b", b"c"]
    consumer.acknowledge(message_id(0, 0, 0b001))
    consumer.redeliver()
    consumer.permit(2)
    assert consumer.values() == [b"a", b"d"]


@pytest.mark.parametrize("kind", TYPES, ids=NAMES)
def test_what_is_acknowledged_does_not_come_again(broker: Broker, kind: Any) -> None:
    produce(producer_of(broker), b"a", b"b", b"c")
    consumer = ConsumerClient(broker, kind)
    ids = [each.command.message_id for each in consumer.pushed()]
    answer = consumer.acknowledge(ids[1])
    assert (answer.consumer_id, answer.request_id, answer.message) == (1, 7, "")
    assert not answer.HasField("error")
    consumer.client.vanish()
    broker.settle()
    assert ConsumerClient(broker, kind).values() == [b"a", b"c"]


def test_parts_of_a_batch_are_acknowledged_by_its_ack_set(broker: Broker) -> None:
    produce(producer_of(broker), tuple(b"%d" % number for number in range(5)))
    consumer = ConsumerClient(broker, EXCLUSIVE)
    consumer.acknowledge(message_id(0, 0, 0b11101))
    consumer.acknowledge(message_id(0, 0, 0b10111), request_id=None)
    consumer.pushed()
    consumer.redeliver()
    assert consumer.values() == [b"0", b"2", b"4"]
    consumer.acknowledge(message_id(0, 0, 0b11000), cumulative=True)
    consumer.redeliver()
    assert consumer.values() == [b"4"]
    consumer.acknowledge(message_id(0, 0))
    consumer.redeliver()
    assert consumer.values() == []


def test_the_number_before_an_entry_acknowledges_all_before_it(broker: Broker) -> None:
    """Clients that do not acknowledge parts of a batch acknowledge so what is before it."""
    produce(producer_of(broker), (b"0", b"1", b"2"), (b"3", b"4"), b"5")
    consumer = ConsumerClient(broker, EXCLUSIVE)
    consumer.acknowledge(message_id(0, 2), cumulative=True)
    consumer.pushed()
    consumer.redeliver()
    assert consumer.values() == [b"3", b"4", b"5"]
    consumer.acknowledge(message_id(0, 4), cumulative=True, request_id=None)
    consumer.redeliver()
    assert consumer.values() == [b"5"]
    assert not consumer.acknowledge(message_id(0, 7), cumulative=True).HasField("error")
    consumer.redeliver()
    assert consumer.values() == [b"5"]


def test_a_consumer_that_is_opened_again_is_the_same_one(broker: Broker) -> None:
    produce(producer_of(broker), b"a")
    consumer = ConsumerClient(broker, EXCLUSIVE)
    assert consumer.values() == [b"a"]
    assert isinstance(consumer.subscribe(permits=0), pb.CommandSuccess)
    assert consumer.values() == []
    consumer.subscription = "another"
    assert consumer.subscribe(permits=0).error == pb.ServerError.NotAllowedError


# --- transactions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "counts"), [(SHARED, [1]), (KEY_SHARED, [1]), (EXCLUSIVE, [0] * 3), (FAILOVER, [0] * 3)]
)
def test_an_abort_gives_back_what_a_commit_takes(broker: Broker, kind: Any, counts: list[int]) -> None:
    """An abort brings back what the transaction had acknowledged, in order subscriptions all that is not."""
    produce(producer_of(broker), b"a", b"b", b"c")
    consumer = ConsumerClient(broker, kind)
    ids = [each.command.message_id for each in consumer.pushed()]
    transaction = consumer.begin()
    answer = consumer.acknowledge(ids[1], transaction=transaction)
    assert (answer.txnid_least_bits, answer.HasField("error")) == (transaction, False)
    consumer.redeliver(ids[1])
    assert b"b" not in consumer.values()
    consumer.abort(transaction)
    assert [each.command.redelivery_count for each in consumer.pushed()] == counts
    transaction = consumer.begin()
    consumer.acknowledge(ids[1], transaction=transaction)
    consumer.end(transaction)
    consumer.client.vanish()
    broker.settle()
    assert ConsumerClient(broker, kind).values() == [b"a", b"c"]


def test_a_conflict_is_told_in_words(broker: Broker) -> None:
    produce(producer_of(broker), b"a")
    consumer = ConsumerClient(broker)
    first, second = consumer.begin(), consumer.begin()
    consumer.acknowledge(message_id(0, 0), transaction=first)
    refused = consumer.acknowledge(message_id(0, 0), transaction=second)
    assert (refused.error, refused.txnid_least_bits) == (pb.ServerError.TransactionConflict, second)
    assert refused.message
    consumer.abort(first)
    late = consumer.acknowledge(message_id(0, 0), transaction=first)
    assert (late.error, bool(late.message)) == (pb.ServerError.InvalidTxnStatus, True)


def test_a_conflict_of_one_lets_the_others_take_part_before_what_comes_next(broker: Broker) -> None:
    producer = producer_of(broker)
    produce(producer, b"a", b"b")
    consumer = ConsumerClient(broker)
    consumer.values()
    consumer.acknowledge(message_id(0, 0))
    transaction = consumer.begin()
    inside: dict[str, Any] = {"txnid_least_bits": transaction, "txnid_most_bits": 0}
    broker.held_syncs = []
    producer.send_bytes(send_frame(b"c"))  # the disk is at work, so that no refusal is answered at once
    broker.settle()
    consumer.client.send(
        *(
            pb.CommandAck(
                consumer_id=1,
                ack_type=pb.CommandAck.Individual,
                message_id=[message_id(0, offset)],
                request_id=10 + offset,
                **inside,
            )
            for offset in (0, 1)
        ),
        pb.CommandEndTxn(request_id=13, txn_action=pb.TxnAction.COMMIT, **inside),
    )
    broker.settle()
    broker.release_syncs()
    broker.settle()
    answers = [each for each in consumer.client.answers() if not isinstance(each, pb.CommandMessage)]
    assert [(each.request_id, each.error if each.HasField("error") else None) for each in answers] == [
        (10, pb.ServerError.TransactionConflict),
        (11, None),
        (13, None),
    ]


def test_nothing_that_is_open_or_aborted_is_pushed(broker: Broker) -> None:
    producer, consumer = producer_of(broker), ConsumerClient(broker)
    open_one, aborted = consumer.begin(), consumer.begin()
    produce(producer, b"aborted", transaction=aborted)
    produce(producer, b"plain")
    produce(producer, b"inside", transaction=open_one)
    assert consumer.values() == []
    consumer.abort(aborted)
    assert consumer.values() == [b"plain"]
    consumer.end(open_one)
    assert consumer.values() == [b"inside"]


# --- who shares a subscription ----------------------------------------------------------------------------------------


def test_an_exclusive_consumer_is_alone(broker: Broker) -> None:
    first = ConsumerClient(broker, EXCLUSIVE)
    second = ConsumerClient(broker, EXCLUSIVE)
    assert (type(second.opened), second.opened.error) == (pb.CommandError, pb.ServerError.ConsumerBusy)
    assert "'s'" in second.opened.message
    first.ask(pb.CommandCloseConsumer(consumer_id=1, request_id=4))
    assert isinstance(second.subscribe(), pb.CommandSuccess)


def test_a_reader_of_a_durable_name_leaves_the_subscription_free(broker: Broker) -> None:
    first = ConsumerClient(broker, EXCLUSIVE)
    first.ask(pb.CommandCloseConsumer(consumer_id=1, request_id=4))
    reader = ConsumerClient(broker, EXCLUSIVE, durable=False)
    assert reader.opened.error == pb.ServerError.NotAllowedError
    assert isinstance(first.subscribe(), pb.CommandSuccess)


def test_consumers_of_a_failover_subscription_hear_who_is_active(broker: Broker) -> None:
    first = ConsumerClient(broker, FAILOVER, consumer_name="b")
    second = ConsumerClient(broker, FAILOVER, consumer_name="c")
    produce(producer_of(broker), b"x")
    assert first.values() == [b"x"]
    assert ([each.is_active for each in first.told()], second.values()) == ([True], [])
    first.client.vanish()
    broker.settle()
    assert second.values() == [b"x"]
    assert [each.is_active for each in second.told()] == [False, True]


def test_what_a_consumer_had_goes_to_others_when_its_connection_is_gone(broker: Broker) -> None:
    produce(producer_of(broker), *[b"%d" % number for number in range(6)])
    first, second = ConsumerClient(broker, permits=4), ConsumerClient(broker, permits=0)
    assert len(first.values()) == 4
    second.permit(10)
    assert second.values() == [b"4", b"5"]
    first.client.vanish()
    broker.settle()
    again = second.pushed()
    assert [each.values for each in again] == [[b"0"], [b"1"], [b"2"], [b"3"]]
    assert {each.command.redelivery_count for each in again} == {0}


# --- redelivery -------------------------------------------------------------------------------------------------------


def test_shared_entries_come_again_with_their_count(broker: Broker) -> None:
    produce(producer_of(broker), b"a", b"b", b"c")
    consumer = ConsumerClient(broker)
    ids = [each.command.message_id for each in consumer.pushed()]
    consumer.redeliver(ids[2], ids[0], message_id(9, 1))
    assert [(each.values, each.command.redelivery_count) for each in consumer.pushed()] == [([b"a"], 1), ([b"c"], 1)]
    consumer.redeliver()
    assert [each.command.redelivery_count for each in consumer.pushed()] == [2, 1, 2]


def test_messages_say_the_epoch_that_their_client_has_asked_for(broker: Broker) -> None:
    produce(producer_of(broker), b"a")
    consumer = ConsumerClient(broker, EXCLUSIVE)
    assert [each.command.HasField("consumer_epoch") for each in consumer.pushed()] == [False]
    consumer.redeliver(epoch=3)
    assert [each.command.consumer_epoch for each in consumer.pushed()] == [3]
    counting = ConsumerClient(broker, EXCLUSIVE, subscription="counting", consumer_epoch=0)
    [first] = counting.pushed()  # it says so, or its client would keep it when it has asked for everything again
    assert (first.command.HasField("consumer_epoch"), first.command.consumer_epoch) == (True, 0)
    shared = ConsumerClient(broker, SHARED, subscription="shared")
    shared.redeliver(epoch=3)
    assert not any(each.command.HasField("consumer_epoch") for each in shared.pushed())


# --- moving and ending a subscription ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "left"),
    [
        ({"message_id": EARLIEST}, [b"a", b"b", b"c", b"d"]),
        ({"message_id": message_id(0, 0)}, [b"a", b"b", b"c", b"d"]),
        ({"message_id": message_id(0, 3)}, [b"d"]),
        ({"message_id": message_id(0, 1, 0b10)}, [b"c", b"d"]),
        ({"message_id": message_id(0, 2**63 - 1)}, []),
        ({"message_id": message_id(2**63 - 1, 2**63 - 1)}, []),
        ({"message_publish_time": 1_699_999_999_999}, [b"a", b"b", b"c", b"d"]),
        ({"message_publish_time": 1_700_000_000_001}, []),
    ],
)
def test_seek_closes_the_consumer_and_moves_its_subscription(
    broker: Broker, target: dict[str, Any], left: list[bytes]
) -> None:
    produce(producer_of(broker), b"a", (b"b", b"c"), b"d")
    consumer = ConsumerClient(broker)
    other = ConsumerClient(broker)
    consumer.acknowledge(message_id(0, 0))
    consumer.pushed()
    consumer.client.send(pb.CommandSeek(consumer_id=1, request_id=5, **target))
    broker.settle()
    closed, success = consumer.told()
    assert (type(closed), closed.consumer_id) == (pb.CommandCloseConsumer, 1)
    assert (type(success), success.request_id) == (pb.CommandSuccess, 5)
    assert [type(each) for each in other.told()] == [pb.CommandCloseConsumer]
    consumer.subscribe()
    assert consumer.values() == left


def test_seek_to_the_time_of_what_an_open_transaction_holds_back(broker: Broker) -> None:
    """Else a message would be left out that is published at that time, and committed later."""
    producer, consumer = producer_of(broker), ConsumerClient(broker)
    transaction = consumer.begin()
    produce(producer, b"inside", transaction=transaction)
    consumer.client.send(pb.CommandSeek(consumer_id=1, request_id=5, message_publish_time=1_700_000_000_000))
    broker.settle()
    consumer.told()
    consumer.subscribe()
    assert consumer.values() == []
    consumer.end(transaction)
    assert consumer.values() == [b"inside"]


def test_seek_to_nothing_is_refused(broker: Broker) -> None:
    consumer = ConsumerClient(broker)
    assert consumer.ask(pb.CommandSeek(consumer_id=1, request_id=5)).error == pb.ServerError.MetadataError


def test_unsubscribe_deletes_the_subscription_of_its_only_consumer(broker: Broker) -> None:
    produce(producer_of(broker), b"a")
    first, second = ConsumerClient(broker), ConsumerClient(broker)
    first.acknowledge(message_id(0, 0))
    first.pushed()
    unsubscribe = pb.CommandUnsubscribe(consumer_id=1, request_id=5)
    assert first.ask(unsubscribe).error == pb.ServerError.ConsumerBusy
    unsubscribe.force = True
    assert isinstance(first.ask(unsubscribe), pb.CommandSuccess)
    assert [type(each) for each in second.told()] == [pb.CommandCloseConsumer]
    second.subscribe()
    assert second.values() == [b"a"]


def test_a_topic_that_is_deleted_closes_its_consumers(broker: Broker) -> None:
    consumer = ConsumerClient(broker)
    broker.engine.submit((DeleteTopic(topic="t"),), lambda answers: None)
    broker.settle()
    assert [type(each) for each in consumer.told()] == [pb.CommandCloseConsumer]
    stranger = ConsumerClient(broker, force_topic_creation=False)
    assert stranger.opened.error == pb.ServerError.TopicNotFound


@pytest.mark.parametrize("topic", ["t", "t-partition-1"])
def test_a_consumer_comes_back_once_its_topic_is_created_again(broker: Broker, topic: str) -> None:
    """After TopicNotFound some clients let a consumer be dead, and tell nobody."""
    create = CreateTopic(topic="t", topic_id=b"t" * 16, partition_count=2)
    broker.engine.submit((create,), lambda answers: None)
    broker.settle()
    consumer = ConsumerClient(broker, topic=topic, force_topic_creation=False)
    broker.engine.submit((DeleteTopic(topic="t"),), lambda answers: None)
    broker.settle()
    assert [type(each) for each in consumer.told()] == [pb.CommandCloseConsumer]
    for _ in range(2):
        assert consumer.subscribe(force_topic_creation=False).error == pb.ServerError.ServiceNotReady
    consumer.topic = "other"
    assert consumer.subscribe(force_topic_creation=False).error == pb.ServerError.TopicNotFound
    consumer.topic = topic
    broker.engine.submit((create,), lambda answers: None)
    broker.settle()
    assert isinstance(consumer.subscribe(force_topic_creation=False), pb.CommandSuccess)
    produce(producer_of(broker, topic), b"again")
    assert consumer.values() == [b"again"]
    assert isinstance(consumer.ask(pb.CommandCloseConsumer(consumer_id=1, request_id=1)), pb.CommandSuccess)
    broker.engine.submit((DeleteTopic(topic="t"),), lambda answers: None)
    broker.settle()
    assert consumer.subscribe(force_topic_creation=False).error == pb.ServerError.TopicNotFound, "it was closed"
