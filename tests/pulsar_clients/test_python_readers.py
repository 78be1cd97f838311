"""Readers and seeks by Pulsar's client for Python."""

import time
from collections.abc import Iterator
from functools import partial

import pulsar
import pytest

from tests.pulsar import wire
from tests.pulsar_clients.brokers import Given
from tests.pulsar_clients.python import ORDERED, TYPES, failure, receive, rest, send, subscribe, texts

VALUES = [str(number) for number in range(10)]


@pytest.fixture
def client(given: Given) -> Iterator[pulsar.Client]:
    with wire.client(given.url) as opened:
        yield opened


@pytest.mark.parametrize("inclusive", [True, False], ids=["inclusive", "exclusive"])
def test_a_reader_begins_at_a_message(client: pulsar.Client, topic: str, inclusive: bool) -> None:
    ids = send(client.create_producer(topic, batching_enabled=False), *VALUES)
    for index in (0, 4, 9):
        reader = client.create_reader(topic, ids[index], start_message_id_inclusive=inclusive)
        assert rest(reader) == VALUES[index if inclusive else index + 1 :]
        reader.close()


def test_a_reader_begins_in_a_batch(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_messages=5, batching_max_publish_delay_ms=60_000
    )
    ids = send(producer, *VALUES)
    for index in (1, 4, 7):
        reader = client.create_reader(topic, ids[index])
        assert rest(reader) == VALUES[index + 1 :]
        reader.close()


def test_a_reader_begins_at_the_first_or_after_the_last(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic, batching_enabled=False)
    send(producer, "one", "two")
    earliest = client.create_reader(topic, pulsar.MessageId.earliest)
    latest = client.create_reader(topic, pulsar.MessageId.latest)
    assert rest(earliest) == ["one", "two"]
    assert rest(latest) == []
    send(producer, "three")
    assert (rest(earliest), rest(latest)) == (["three"], ["three"])


def test_a_reader_of_an_empty_topic(client: pulsar.Client, topic: str) -> None:
    for start in (pulsar.MessageId.earliest, pulsar.MessageId.latest):
        assert rest(client.create_reader(topic, start)) == []


def test_a_reader_seeks(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic, batching_enabled=False)
    ids = send(producer, *VALUES)
    time.sleep(0.02)  # so that the clock of the messages goes on
    moment = time.time_ns() // 1_000_000
    time.sleep(0.02)
    send(producer, "later")
    reader = client.create_reader(topic, pulsar.MessageId.earliest, start_message_id_inclusive=True)
    reader.seek(ids[5])
    assert rest(reader) == [*VALUES[5:], "later"]
    reader.seek(moment)
    assert rest(reader) == ["later"]
    reader.seek(pulsar.MessageId.earliest)
    assert rest(reader) == [*VALUES, "later"]


@pytest.mark.parametrize("kind", TYPES)
def test_a_subscription_seeks(client: pulsar.Client, topic: str, kind: str) -> None:
    consumer = subscribe(client, topic, kind, start_message_id_inclusive=True)
    producer = client.create_producer(topic, batching_enabled=False)
    ids = send(producer, *VALUES)
    for each in receive(consumer, 10):
        consumer.acknowledge(each)
    consumer.seek(ids[4])
    assert sorted(texts(receive(consumer, 6))) == VALUES[4:]
    consumer.seek(pulsar.MessageId.latest)
    send(producer, "last")
    assert texts(receive(consumer, 1)) == ["last"]


def test_a_reader_of_a_partitioned_topic(client: pulsar.Client, topic: str, given: Given) -> None:
    given.create_partitioned(topic, 2)
    producer = client.create_producer(topic, batching_enabled=False)
    for value in VALUES:
        producer.send(value.encode(), partition_key=value)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert sorted(rest(reader)) == VALUES


def test_a_table_view_has_the_last_value_of_each_key(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic, batching_enabled=False)
    for key, value in (("a", b"1"), ("b", b"2"), ("a", b"3")):
        producer.send(value, partition_key=key)
    view = client.create_table_view(topic)
    assert {key: view.get(key) for key in ("a", "b", "c")} == {"a": b"3", "b": b"2", "c": None}
    view.close()


def test_what_was_never_compacted_is_read_as_it_is(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic, batching_enabled=False)
    for key, value in (("a", b"1"), ("b", b"2"), ("a", b"3")):
        producer.send(value, partition_key=key)
    reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True)
    assert rest(reader) == ["1", "2", "3"]
    for kind in ORDERED:
        consumer = subscribe(client, topic, kind, kind, is_read_compacted=True)
        assert texts(receive(consumer, 3)) == ["1", "2", "3"]
        consumer.close()
    for kind in TYPES.keys() - {*ORDERED}:
        refused = failure(partial(subscribe, client, topic, kind, kind, is_read_compacted=True))
        assert refused is pulsar.InvalidConfiguration
