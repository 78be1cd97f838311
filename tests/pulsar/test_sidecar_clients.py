"""Pulsar's client for Python with the ids of staged messages; it has no transactions, so that frames send for it."""

from collections.abc import Iterator
from typing import Any

import pulsar
import pytest

import exacta
from exacta.protocol.pulsar.message_ids import entry_offset_of
from tests.pulsar.joint import COMMIT
from tests.pulsar.wire import Wire, client, running

TOPIC = "persistent://public/default/t"


@pytest.fixture
def broker() -> Iterator[exacta.Broker]:
    with running(transaction_buffer="sidecar") as started:
        yield started


class Sent:
    """Two transactions, which have sent `a` and `b` `c` by turns; the second one commits first: b a c."""

    def __init__(self, broker: exacta.Broker) -> None:
        self.wire = Wire(broker.pulsar_url)
        self.wire.open_producer(TOPIC)
        self.transactions = [self.wire.begin().txnid_least_bits for _ in range(2)]
        self.ids = {}
        for number, (value, which) in enumerate(((b"a", 0), (b"b", 1), (b"c", 0))):
            transaction = self.transactions[which]
            told = self.wire.produce(value, sequence=number, transaction=transaction).message_id
            self.ids[value] = pulsar.MessageId(-1, told.ledger_id, entry_offset_of(told), -1)

    def commit(self) -> None:
        for each in reversed(self.transactions):
            assert not self.wire.end(each, COMMIT).HasField("error")
        self.wire.close()


def received(consumer: Any, count: int) -> list[bytes]:
    return [consumer.receive(20_000).data() for _ in range(count)]


def copied(message_id: pulsar.MessageId) -> pulsar.MessageId:
    return pulsar.MessageId.deserialize(message_id.serialize())


def test_ids_travel_as_bytes_and_compare_below_those_of_messages(broker: exacta.Broker) -> None:
    sent = Sent(broker)
    sent.commit()
    ids = [copied(each) for each in sent.ids.values()]
    assert [each.entry_id() for each in ids] == [each.entry_id() for each in sent.ids.values()]
    with client(broker.pulsar_url) as opened:
        consumer = opened.subscribe(TOPIC, "s", initial_position=pulsar.InitialPosition.Earliest)
        first = consumer.receive(20_000).message_id()
        assert all(pulsar.MessageId.earliest < each < first for each in ids)


@pytest.mark.parametrize("kind", [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared])
def test_it_acknowledges(broker: exacta.Broker, kind: Any) -> None:
    sent = Sent(broker)
    sent.commit()
    with client(broker.pulsar_url) as opened:
        options = {"consumer_type": kind, "initial_position": pulsar.InitialPosition.Earliest}
        consumer = opened.subscribe(TOPIC, "s", **options)
        consumer.acknowledge(copied(sent.ids[b"a"]))
        if kind is pulsar.ConsumerType.Exclusive:
            consumer.acknowledge_cumulative(sent.ids[b"b"])
        consumer.close()
        wanted = [b"c"] if kind is pulsar.ConsumerType.Exclusive else [b"b", b"c"]
        assert received(opened.subscribe(TOPIC, "s", **options), len(wanted)) == wanted


def test_it_is_sought_and_read_from(broker: exacta.Broker) -> None:
    sent = Sent(broker)
    with client(broker.pulsar_url) as opened:
        with pytest.raises(pulsar.PulsarException):  # its transaction is open
            opened.create_reader(TOPIC, sent.ids[b"a"])
        consumer = opened.subscribe(TOPIC, "s", initial_position=pulsar.InitialPosition.Earliest)
        with pytest.raises(pulsar.PulsarException):
            consumer.seek(sent.ids[b"a"])
        sent.commit()
        assert received(consumer, 3) == [b"b", b"a", b"c"]
        consumer.seek(sent.ids[b"a"])
        assert received(consumer, 2) == [b"a", b"c"]
        reader = opened.create_reader(TOPIC, sent.ids[b"a"])
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(20_000).data())
        assert found == [b"a", b"c"]
