"""GET_LAST_MESSAGE_ID: the last message that can be seen, read once for all who ask meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest

from exacta.core.commands import DeleteRecords
from exacta.core.ids import Offset
from exacta.ports.log import Form
from exacta.ports.record_format import Converted, LogEntry, Wanted
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.by_hand import Broker, broker_by_hand
from tests.pulsar.consuming import EXCLUSIVE, SHARED, ConsumerClient, message_id, produce, producer_of

broker = pytest.fixture(broker_by_hand)

Done = Callable[[Converted | Exception], None]


def test_the_last_message_is_the_last_that_can_be_seen(broker: Broker) -> None:
    consumer, producer = ConsumerClient(broker), producer_of(broker)

    def last() -> tuple[int, int, int]:
        answer = consumer.last_message()
        found, marked = answer.last_message_id, answer.consumer_mark_delete_position
        return found.entry_id, found.batch_index, marked.entry_id

    before_all = 2**64 - 1
    assert last() == (before_all, -1, before_all)
    produce(producer, b"a", (b"b", b"c"))
    consumer.pushed()
    assert last() == (1, 1, before_all)
    consumer.acknowledge(message_id(0, 0))
    assert last() == (1, 1, 0)
    consumer.acknowledge(message_id(0, 1, 0b10))
    assert last() == (1, 1, 0)
    consumer.acknowledge(message_id(0, 1))
    assert last() == (1, 1, 1)
    transaction = consumer.begin()
    produce(producer, b"aborted", transaction=transaction)
    assert last() == (1, 1, 1)
    consumer.abort(transaction)
    entry, index, marked = last()
    assert (entry, index) == (1, 1)
    assert marked >= 1


def test_there_is_no_last_message_where_all_are_deleted(broker: Broker) -> None:
    """A reader would wait for ever for one that is deleted, though its batch may still lie in the journal."""
    consumer = ConsumerClient(broker, EXCLUSIVE)
    produce(producer_of(broker), (b"a", b"b"))
    broker.engine.submit([DeleteRecords(topic="t", partition=0, before_offset=Offset(2))], lambda answers: None)
    broker.settle()
    consumer.pushed()
    assert consumer.last_message().last_message_id.entry_id == 2**64 - 1


def test_it_is_converted_once_for_all_who_ask_meanwhile(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may ask hundreds of times while a conversion waits for others, and each would hold a batch."""
    held: list[tuple[list[LogEntry], Done]] = []

    def convert(entries: list[LogEntry], wanted: Wanted, done: Done) -> None:
        held.append((entries, done))

    produce(producer_of(broker), b"value")
    consumers = [ConsumerClient(broker, SHARED, subscription=name, permits=0) for name in "ab"]
    monkeypatch.setattr(broker.shared, "form", Form(convert))
    for number, each in enumerate([*consumers, *consumers]):
        each.client.send(pb.CommandGetLastMessageId(consumer_id=1, request_id=number))
    broker.settle()
    [(entries, done)] = held
    done(Converted(entries))
    broker.settle()
    found = [answer for each in consumers for answer in each.client.answers()]
    assert sorted(each.request_id for each in found) == [0, 1, 2, 3]
    assert {each.last_message_id.entry_id for each in found} == {0}


def test_who_asks_after_a_conversion_that_raises_is_answered(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(entries: Any, wanted: Any, done: Done) -> None:
        done(MemoryError("too much"))

    produce(producer_of(broker), b"value")
    with monkeypatch.context() as patched:
        patched.setattr(broker.shared, "form", Form(failing))
        first = ConsumerClient(broker, SHARED, permits=0)
        first.client.send(pb.CommandGetLastMessageId(consumer_id=1, request_id=1))
        broker.settle()
    assert ConsumerClient(broker, SHARED, permits=0).last_message().last_message_id.entry_id == 0
