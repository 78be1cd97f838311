"""GET_LAST_MESSAGE_ID where the last batch is read once for all who ask meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest

from exacta.ports.record_format import Converted, LogEntry, Wanted
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.by_hand import Broker, broker_by_hand
from tests.pulsar.consuming import SHARED, ConsumerClient, produce, producer_of

broker = pytest.fixture(broker_by_hand)

Done = Callable[[Converted | Exception], None]


def test_it_is_converted_once_for_all_who_ask_meanwhile(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may ask hundreds of times while a conversion waits for others, and each would hold a batch."""
    held: list[tuple[list[LogEntry], Done]] = []

    def convert(entries: list[LogEntry], wanted: Wanted, done: Done) -> None:
        held.append((entries, done))

    produce(producer_of(broker), b"value")
    consumers = [ConsumerClient(broker, SHARED, subscription=name, permits=0) for name in "ab"]
    monkeypatch.setattr(broker.context, "convert", convert)
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
        patched.setattr(broker.context, "convert", failing)
        first = ConsumerClient(broker, SHARED, permits=0)
        first.client.send(pb.CommandGetLastMessageId(consumer_id=1, request_id=1))
        broker.settle()
    assert ConsumerClient(broker, SHARED, permits=0).last_message().last_message_id.entry_id == 0
