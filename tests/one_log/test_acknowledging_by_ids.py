"""Messages that Pulsar's client for Python has received are acknowledged in a joint transaction, by their ids."""

from collections.abc import Iterator
from typing import Any

import pulsar
import pytest

import exacta
from exacta.client.acknowledging import AcknowledgedRuns, NotAcknowledged, acknowledge, can_acknowledge, named
from exacta.client.routing import Client
from tests.pulsar.joint import join, kafka_producer, write
from tests.pulsar.wire import client

TIMEOUT_MS = 20_000
TOPIC, NAME = "orders", "billing"


@pytest.fixture
def opened(broker: exacta.Broker) -> Iterator[pulsar.Client]:
    with client(broker.pulsar_url) as opened:
        yield opened


def subscribe(opened: pulsar.Client) -> pulsar.Consumer:
    return opened.subscribe(
        TOPIC,
        NAME,
        consumer_type=pulsar.ConsumerType.Shared,
        initial_position=pulsar.InitialPosition.Earliest,
    )


def send(opened: pulsar.Client, values: list[bytes], **options: Any) -> None:
    producer = opened.create_producer(TOPIC, **options)
    for value in values:
        producer.send_async(value, lambda *_: None)
    producer.flush()
    producer.close()


def receive(consumer: pulsar.Consumer, count: int) -> list[pulsar.Message]:
    return [consumer.receive(TIMEOUT_MS) for _ in range(count)]


@pytest.mark.parametrize("commit", [True, False])
def test_they_end_with_a_kafka_producers_transaction(
    broker: exacta.Broker, opened: pulsar.Client, commit: bool
) -> None:
    """Some of them are parts of a batch, which Pulsar's own acknowledgement would wait for."""
    bootstrap, consumer = broker.bootstrap_servers, subscribe(opened)
    send(opened, [b"0"])
    send(opened, [b"1", b"2", b"3", b"4"], batching_enabled=True, batching_max_publish_delay_ms=1_000)
    messages = receive(consumer, 5)
    producer = kafka_producer(bootstrap)
    producer.begin_transaction()
    write(producer, "invoices", b"invoice")
    with Client(bootstrap) as cluster:
        assert can_acknowledge(cluster)
        wanted = named({NAME: [messages[0], messages[2].message_id(), messages[3], messages[3]]})
        assert [len(each.runs) for each in wanted] == [2]
        for _ in range(2):  # as where an answer is lost
            acknowledge(cluster, join(bootstrap), wanted)
        producer.commit_transaction() if commit else producer.abort_transaction()
        consumer.close()
        again = subscribe(opened)
        left = [b"1", b"4"] if commit else [b"0", b"1", b"2", b"3", b"4"]
        found = receive(again, len(left))
        assert sorted(each.data() for each in found) == left
        if not commit:
            return
        producer.begin_transaction()
        write(producer, "invoices", b"once more")
        with pytest.raises(NotAcknowledged, match="acknowledged already, or in another open transaction"):
            acknowledge(cluster, join(bootstrap), wanted)
        with pytest.raises(NotAcknowledged, match="no such subscription"):
            acknowledge(cluster, join(bootstrap), named({"other": found}))
        producer.abort_transaction()


def test_a_message_in_chunks_is_refused(broker: exacta.Broker, opened: pulsar.Client) -> None:
    consumer = subscribe(opened)
    send(opened, [b"x" * 6_000_000, b"y"], chunking_enabled=True, batching_enabled=False)
    large, small = receive(consumer, 2)
    assert len(large.data()) == 6_000_000
    with pytest.raises(NotAcknowledged, match="came in chunks"):
        named({NAME: [large, small]})
    [found] = named({NAME: [small]})
    assert found.runs == ((2, 2),)


def test_what_is_no_message() -> None:
    for wrong in (b"an id", pulsar.MessageId.earliest, pulsar.MessageId.latest):
        with pytest.raises(TypeError):
            named({NAME: [wrong]})  # type: ignore[list-item]
    with pytest.raises(TypeError, match="by the names of their subscriptions"):
        named([])  # type: ignore[arg-type]
    assert named({NAME: []}) == named({}) == ()


@pytest.mark.parametrize(("batch_index", "offset"), [(-1, 2**40), (0, 2**40), (300, 2**40 + 300)])
def test_a_message_is_named_by_the_numbers_of_its_id(batch_index: int, offset: int) -> None:
    made = pulsar.MessageId(partition=3, ledger_id=2**33 + 1, entry_id=2**40, batch_index=batch_index)
    assert named({NAME: [made]}) == (AcknowledgedRuns(NAME, 2**33 + 1, ((offset, offset),)),)
