"""READ_UNCOMMITTED: a reader that asks for it gets messages before, and whatever, the end of their transaction."""

from typing import Any

import pytest

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.message_ids import latest
from tests.pulsar.by_hand import Broker, broker_by_hand
from tests.pulsar.consuming import (
    EXCLUSIVE,
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
STATS = pb.CommandConsumerStats(request_id=4, consumer_id=1)
LAST_MESSAGE = pb.CommandGetLastMessageId(consumer_id=1, request_id=9)


def properties(*levels: str) -> list[pb.KeyValue]:
    return [pb.KeyValue(key="isolation.level", value=level) for level in levels]


def reader_of(broker: Broker, kind: Any = EXCLUSIVE, level: str = "read_uncommitted", **fields: Any) -> ConsumerClient:
    return ConsumerClient(broker, kind, durable=False, metadata=properties(level), **fields)


def refusal(consumer: ConsumerClient) -> tuple[int, str]:
    assert isinstance(consumer.opened, pb.CommandError)
    return consumer.opened.error, consumer.opened.message


@pytest.mark.parametrize("kind", TYPES, ids=NAMES)
@pytest.mark.parametrize("action", [pb.COMMIT, pb.ABORT], ids=["commit", "abort"])
def test_messages_are_pushed_before_the_end_of_their_transaction(broker: Broker, kind: Any, action: Any) -> None:
    reader, producer = reader_of(broker, kind), producer_of(broker)
    other = reader_of(broker, kind, "read_committed", subscription="other")
    transaction = other.begin()
    produce(producer, b"a", (b"b", b"c"), transaction=transaction)
    produce(producer, b"plain")
    assert (reader.values(), other.values()) == ([b"a", b"b", b"c", b"plain"], [])
    other.end(transaction, action)
    produce(producer, b"next")
    committed = [b"a", b"b", b"c"] if action == pb.COMMIT else []
    assert (reader.values(), other.values()) == ([b"next"], [*committed, b"plain", b"next"])


@pytest.mark.parametrize("kind", TYPES, ids=NAMES)
@pytest.mark.parametrize("is_open", [True, False], ids=["open", "aborted"])
def test_messages_are_read_from_the_log_and_come_again(broker: Broker, kind: Any, is_open: bool) -> None:
    producer, writer = producer_of(broker), ConsumerClient(broker, subscription="other", permits=0)
    transaction = writer.begin()
    produce(producer, (b"a", b"b"), b"c", transaction=transaction)
    if is_open:
        broker.pass_time(20)  # nobody waits for the sync
    else:
        writer.abort(transaction)
    reader = reader_of(broker, kind)
    assert reader.values() == [b"a", b"b", b"c"]
    reader.redeliver()
    assert reader.values() == [b"a", b"b", b"c"]


def test_a_message_is_pushed_as_soon_as_it_is_acknowledged(broker: Broker) -> None:
    """No time passes: what is only written is synced at once where a reader waits for it, and only there."""
    reader, producer = reader_of(broker, permits=0), producer_of(broker)
    produce(producer, b"a", transaction=reader.begin())
    reader.permit(1)
    assert reader.values() == []
    broker.pass_time(20)
    assert reader.values() == [b"a"]
    reader.permit(1)
    produce(producer, b"b", transaction=reader.begin())
    assert reader.values() == [b"b"]


@pytest.mark.parametrize("field", ["metadata", "subscription_properties"])
@pytest.mark.parametrize("level", ["READ_UNCOMMITTED", "Read_Uncommitted"])
def test_the_property_is_the_consumers_or_the_subscriptions_in_any_case(broker: Broker, field: str, level: str) -> None:
    reader = ConsumerClient(broker, durable=False, **dict[str, Any]({field: properties(level)}))
    produce(producer_of(broker), b"a", transaction=reader.begin())
    assert reader.values() == [b"a"]


@pytest.mark.parametrize("durable", [False, True])
def test_read_committed_may_be_said(broker: Broker, durable: bool) -> None:
    consumer = ConsumerClient(broker, durable=durable, metadata=properties("READ_COMMITTED"))
    produce(producer_of(broker), b"a", transaction=consumer.begin())
    assert consumer.values() == []
    another = ConsumerClient(broker, durable=durable)
    assert isinstance(another.opened, pb.CommandSuccess), "it is the default"


@pytest.mark.parametrize("level", ["", "serializable", "1", "read uncommitted"])
def test_any_other_level_is_refused(broker: Broker, level: str) -> None:
    for field in ("metadata", "subscription_properties"):
        code, text = refusal(ConsumerClient(broker, durable=False, **dict[str, Any]({field: properties(level)})))
        assert (code, repr(level) in text) == (pb.ServerError.NotAllowedError, True)


def test_two_levels_are_refused(broker: Broker) -> None:
    consumer = ConsumerClient(
        broker,
        durable=False,
        metadata=properties("read_uncommitted"),
        subscription_properties=properties("read_committed"),
    )
    code, text = refusal(consumer)
    assert (code, "'read_committed', 'read_uncommitted'" in text) == (pb.ServerError.NotAllowedError, True)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_durable_subscription_is_refused(broker: Broker, is_there: bool) -> None:
    if is_there:
        ConsumerClient(broker, SHARED)
    code, text = refusal(ConsumerClient(broker, SHARED, metadata=properties("read_uncommitted")))
    assert (code, "durable" in text) == (pb.ServerError.NotAllowedError, True)


@pytest.mark.parametrize("first", ["read_committed", "read_uncommitted"])
def test_consumers_that_disagree_do_not_share_a_subscription(broker: Broker, first: str) -> None:
    second = "read_committed" if first == "read_uncommitted" else "read_uncommitted"
    reader = reader_of(broker, SHARED, first)
    code, text = refusal(reader_of(broker, SHARED, second))
    assert (code, "isolation.level" in text) == (pb.ServerError.ConsumerBusy, True)
    assert isinstance(reader_of(broker, SHARED, first).opened, pb.CommandSuccess)
    produce(producer_of(broker), b"a")
    assert reader.values() == [b"a"], "it is still there"


def test_another_level_may_follow_once_the_last_consumer_is_gone(broker: Broker) -> None:
    reader_of(broker).client.vanish()
    broker.settle()
    assert isinstance(reader_of(broker, level="read_committed").opened, pb.CommandSuccess)


def test_a_reader_that_comes_back_goes_on_at_its_level(broker: Broker) -> None:
    """Its client subscribes anew, from the message on that the program has got last."""
    reader, producer = reader_of(broker), producer_of(broker)
    transaction = reader.begin()
    produce(producer, b"a", b"b", transaction=transaction)
    assert reader.values() == [b"a", b"b"]
    reader.client.vanish()
    broker.settle()
    back = reader_of(broker, start_message_id=message_id(0, 1))
    assert back.values() == [b"b"]
    produce(producer, b"c", transaction=transaction)
    assert back.values() == [b"c"]


def test_its_last_message_is_what_it_will_get(broker: Broker) -> None:
    """It has a message available as soon as there is a receipt, and the message is aborted and there all the same."""
    reader, other = reader_of(broker), reader_of(broker, level="read_committed", subscription="other")
    transaction = reader.begin()
    produce(producer_of(broker), b"a", (b"b", b"c"), transaction=transaction)

    def last(consumer: ConsumerClient) -> tuple[int, int]:
        consumer.pushed()
        found = consumer.last_message().last_message_id
        return found.entry_id, found.batch_index

    before_all = 2**64 - 1
    assert (last(reader), last(other)) == ((1, 1), (before_all, -1))
    reader.acknowledge(message_id(0, 1), cumulative=True)
    assert reader.last_message().consumer_mark_delete_position.entry_id == 1
    reader.abort(transaction)
    assert (last(reader), last(other)) == ((1, 1), (before_all, -1)), "the marker behind it is no message"


def test_its_last_message_is_there_as_soon_as_it_is_acknowledged(broker: Broker) -> None:
    """A write into an open transaction is answered before it is durable, and readers see what is durable."""
    reader, producer = reader_of(broker), producer_of(broker)
    transaction = reader.begin()
    produce(producer, b"a", transaction=transaction)
    reader.pushed()
    broker.held_syncs = []
    produce(producer, b"b", transaction=transaction)
    reader.client.send(LAST_MESSAGE)
    broker.settle()
    assert (reader.values(), reader.told()) == ([], []), "it waits for the disk"
    broker.release_syncs()
    broker.settle()
    assert reader.values() == [b"b"]
    [answer] = reader.told()
    assert answer.last_message_id.entry_id == 1


def test_its_backlog_are_the_messages_that_will_still_come(broker: Broker) -> None:
    reader, other = reader_of(broker, permits=0), reader_of(broker, level="read_committed", subscription="other")
    producer = producer_of(broker)
    for action in (pb.COMMIT, pb.ABORT):
        transaction = reader.begin()
        produce(producer, b"x", (b"y", b"z"), transaction=transaction)
        reader.end(transaction, action)
    produce(producer, b"open", transaction=reader.begin())
    other.pushed()
    assert (reader.ask(STATS).msg_backlog, other.ask(STATS).msg_backlog) == (7, 3)
    reader.acknowledge(message_id(0, 0), message_id(0, 5))
    assert reader.ask(STATS).msg_backlog == 4


@pytest.mark.parametrize("cumulative", [False, True])
def test_what_is_acknowledged_does_not_come_again(broker: Broker, cumulative: bool) -> None:
    reader = reader_of(broker, EXCLUSIVE if cumulative else KEY_SHARED)
    transaction = reader.begin()
    produce(producer_of(broker), b"a", b"b", b"c", transaction=transaction)
    reader.pushed()
    assert not reader.acknowledge(message_id(0, 1), cumulative=cumulative).HasField("error")
    reader.abort(transaction)
    reader.redeliver()
    assert reader.values() == ([b"c"] if cumulative else [b"a", b"c"])


@pytest.mark.parametrize(("to", "expected"), [(message_id(0, 1), [b"b", b"c"]), (latest(), [])])
def test_it_seeks_among_messages_of_an_open_transaction(broker: Broker, to: Any, expected: list[bytes]) -> None:
    reader = reader_of(broker)
    transaction = reader.begin()
    produce(producer_of(broker), b"a", b"b", b"c", transaction=transaction)
    reader.pushed()
    reader.client.send(pb.CommandSeek(consumer_id=1, request_id=8, message_id=to))
    broker.settle()
    assert [type(each) for each in reader.told()] == [pb.CommandCloseConsumer, pb.CommandSuccess]
    assert isinstance(reader.subscribe(metadata=properties("read_uncommitted"), durable=False), pb.CommandSuccess)
    assert reader.values() == expected
