"""Consumers by Pulsar's client for Python: subscriptions of all types, acknowledgements, and what comes again."""

from collections.abc import Iterator
from typing import Any

import pulsar
import pytest

from tests.pulsar import wire
from tests.pulsar_clients.brokers import Given
from tests.pulsar_clients.python import (
    TYPES,
    failure,
    receive,
    send,
    subscribe,
    text_of,
    texts,
)

COUNT = 20
VALUES = [f"{number:02}" for number in range(COUNT)]


@pytest.fixture
def client(given: Given) -> Iterator[pulsar.Client]:
    with wire.client(given.url) as opened:
        yield opened


def batches(client: pulsar.Client, topic: str, size: int, **options: Any) -> Any:
    """Open a producer whose batches are of this size, and less only at the end of `send`."""
    if size > 1:
        options |= {"batching_max_messages": size, "batching_max_publish_delay_ms": 60_000}
    return client.create_producer(topic, batching_enabled=size > 1, **options)


@pytest.mark.parametrize("batch", [1, 5], ids=["single", "batches"])
@pytest.mark.parametrize("kind", TYPES)
def test_each_message_comes_until_it_is_acknowledged(client: pulsar.Client, topic: str, kind: str, batch: int) -> None:
    consumer = subscribe(client, topic, kind, batch_index_ack_enabled=True)
    producer = batches(client, topic, batch)
    send(producer, *VALUES)
    found = receive(consumer, COUNT)
    assert texts(found) == VALUES
    for each in found[::2]:
        consumer.acknowledge(each)
    consumer.close()  # it sends what it has grouped
    consumer = subscribe(client, topic, kind, batch_index_ack_enabled=True)
    found = receive(consumer, COUNT // 2)
    assert texts(found) == VALUES[1::2]
    for each in found:
        consumer.acknowledge(each)
    consumer.close()
    send(producer, "last")
    assert texts(receive(subscribe(client, topic, kind, batch_index_ack_enabled=True), 1)) == ["last"]


@pytest.mark.parametrize("batch", [1, 5], ids=["single", "batches"])
@pytest.mark.parametrize("kind", ["exclusive", "failover"])
def test_all_upto_a_message_is_acknowledged(client: pulsar.Client, topic: str, kind: str, batch: int) -> None:
    consumer = subscribe(client, topic, kind)
    send(batches(client, topic, batch), *VALUES)
    consumer.acknowledge_cumulative(receive(consumer, 10)[-1])
    consumer.close()
    assert texts(receive(subscribe(client, topic, kind), 10)) == VALUES[10:]


def test_a_shared_subscription_has_no_cumulative_acks(client: pulsar.Client, topic: str) -> None:
    consumer = subscribe(client, topic, "shared")
    send(batches(client, topic, 1), "x")
    [found] = receive(consumer, 1)
    assert failure(lambda: consumer.acknowledge_cumulative(found)) is pulsar.CumulativeAcknowledgementNotAllowedError


def test_without_acks_of_its_messages_a_batch_comes_again_as_a_whole(client: pulsar.Client, topic: str) -> None:
    consumer = subscribe(client, topic, "shared")
    send(batches(client, topic, 4), *"abcd")
    for each in receive(consumer, 4)[:3]:
        consumer.acknowledge(each)
    consumer.close()
    assert texts(receive(subscribe(client, topic, "shared"), 4)) == [*"abcd"]


@pytest.mark.parametrize("kind", ["shared", "key-shared"])
def test_negative_acks_are_counted(client: pulsar.Client, topic: str, kind: str) -> None:
    consumer = subscribe(client, topic, kind, negative_ack_redelivery_delay_ms=100)
    send(batches(client, topic, 1), "a", "b")
    [first, second] = receive(consumer, 2)
    consumer.acknowledge(first)
    for count in (1, 2):
        consumer.negative_acknowledge(second)
        [second] = receive(consumer, 1)
        assert (text_of(second), second.redelivery_count()) == ("b", count)


@pytest.mark.parametrize("kind", TYPES)
def test_all_that_is_not_acknowledged_comes_again(client: pulsar.Client, topic: str, kind: str) -> None:
    consumer = subscribe(client, topic, kind)
    send(batches(client, topic, 1), *"abcd")
    receive(consumer, 4)
    consumer.redeliver_unacknowledged_messages()
    assert sorted(texts(receive(consumer, 4))) == [*"abcd"]


def test_what_is_refused_too_often_is_a_dead_letter(client: pulsar.Client, topic: str) -> None:
    dead = subscribe(client, f"{topic}-dead")
    consumer = subscribe(
        client,
        topic,
        "shared",
        negative_ack_redelivery_delay_ms=50,
        dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(max_redeliver_count=1, dead_letter_topic=f"{topic}-dead"),
    )
    producer = batches(client, topic, 1)
    send(producer, "bad")
    for _ in range(2):
        [found] = receive(consumer, 1)
        consumer.negative_acknowledge(found)
    assert texts(receive(dead, 1)) == ["bad"]
    send(producer, "good")
    assert texts(receive(consumer, 1)) == ["good"]


def test_consumers_share_messages(client: pulsar.Client, topic: str) -> None:
    consumers = [subscribe(client, topic, "shared", receiver_queue_size=5) for _ in range(2)]
    producer = batches(client, topic, 1)
    send(producer, *VALUES[:10])
    found = [texts(receive(each, 5)) for each in consumers]
    assert sorted(found[0] + found[1]) == VALUES[:10]


def test_a_key_has_one_consumer(client: pulsar.Client, topic: str) -> None:
    consumers = [subscribe(client, topic, "key-shared") for _ in range(2)]
    producer = batches(client, topic, 1)
    keys = [f"key-{index}" for index in range(10)]
    for number in range(40):
        producer.send(b"%d" % number, partition_key=keys[number % 10])
    found: dict[str, list[int]] = {}
    holders: dict[str, set[int]] = {}
    left = 40
    while left:
        for index, consumer in enumerate(consumers):
            try:
                message = consumer.receive(timeout_millis=50)
            except pulsar.Timeout:
                continue
            left -= 1
            found.setdefault(message.partition_key(), []).append(int(message.data()))
            holders.setdefault(message.partition_key(), set()).add(index)
    assert found == {key: [*range(index, 40, 10)] for index, key in enumerate(keys)}
    assert all(len(each) == 1 for each in holders.values())


def test_an_exclusive_subscription_has_one_consumer(client: pulsar.Client, topic: str) -> None:
    consumer = subscribe(client, topic)
    assert failure(lambda: subscribe(client, topic)) is pulsar.ConsumerBusy
    consumer.close()
    subscribe(client, topic)


def test_unsubscribing_forgets_what_was_acknowledged(client: pulsar.Client, topic: str) -> None:
    consumer = subscribe(client, topic)
    send(batches(client, topic, 1), "a", "b")
    for each in receive(consumer, 2):
        consumer.acknowledge(each)
    consumer.unsubscribe()
    assert texts(receive(subscribe(client, topic), 2)) == ["a", "b"]


def test_a_new_subscription_begins_at_the_end(client: pulsar.Client, topic: str) -> None:
    producer = batches(client, topic, 1)
    send(producer, "before")
    consumer = subscribe(client, topic, initial_position=pulsar.InitialPosition.Latest)
    send(producer, "after")
    assert texts(receive(consumer, 1)) == ["after"]


@pytest.mark.parametrize("kind", TYPES)
def test_a_partitioned_topic(client: pulsar.Client, topic: str, given: Given, kind: str) -> None:
    given.create_partitioned(topic, 3)
    consumer = subscribe(client, topic, kind)
    producer = batches(client, topic, 1)
    for value in VALUES:
        producer.send(value.encode(), partition_key=value)
    found = receive(consumer, COUNT)
    assert sorted(texts(found)) == VALUES
    assert {each.message_id().partition() for each in found} == {0, 1, 2}
    assert set(client.get_topic_partitions(topic)) == {
        f"persistent://public/default/{topic}-partition-{index}" for index in range(3)
    }


def test_several_topics(client: pulsar.Client, topic: str) -> None:
    topics = [f"{topic}-{index}" for index in range(3)]
    for each in topics:
        send(batches(client, each, 1), each)
    consumer = subscribe(client, topics, "shared")
    assert sorted(texts(receive(consumer, 3))) == topics


def test_the_last_message_id(client: pulsar.Client, topic: str) -> None:
    consumer = subscribe(client, topic)
    producer = batches(client, topic, 3)
    ids = send(producer, *"abc")
    last = consumer.get_last_message_id()
    assert (last.entry_id(), last.batch_index()) == (ids[-1].entry_id(), 2)


def test_what_a_message_carries_arrives(client: pulsar.Client, topic: str) -> None:
    consumer = subscribe(client, topic)
    producer = batches(client, topic, 1, producer_name=topic)
    producer.send(b"v", properties={"a": "1"}, partition_key="k", ordering_key="o", event_timestamp=1234, sequence_id=7)
    [found] = receive(consumer, 1)
    assert (found.properties(), found.partition_key(), found.ordering_key()) == ({"a": "1"}, "k", "o")
    assert (found.event_timestamp(), found.producer_name()) == (1234, topic)
    assert found.publish_timestamp() > 0


@pytest.mark.parametrize("codec", ["LZ4", "ZLib", "ZSTD", "SNAPPY"])
def test_each_codec(client: pulsar.Client, topic: str, codec: str) -> None:
    consumer = subscribe(client, topic)
    values = [f"{value} " * 100 for value in VALUES]
    send(batches(client, topic, 5, compression_type=getattr(pulsar.CompressionType, codec)), *values)
    assert texts(receive(consumer, COUNT)) == values
