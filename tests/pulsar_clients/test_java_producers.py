"""Producers by Pulsar's client for Java: access modes, repeats, compression, batches."""

from typing import Any

import jpype
import pytest

from tests.pulsar_clients.java import (
    JavaClient,
    api,
    outcome,
    receive,
    receive_upto,
    seconds,
    send,
    send_async,
    texts,
)


@pytest.mark.parametrize("codec", ["NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"])
@pytest.mark.parametrize("batch", [1, 5], ids=["single", "batches"])
def test_each_codec(java: JavaClient, topic: str, codec: str, batch: int) -> None:
    options = {"compressionType": getattr(api("CompressionType"), codec)}
    producer = java.batching(topic, batch, **options) if batch > 1 else java.producer(topic, **options)
    consumer = java.consumer(topic)
    values = [f"{number} " * 200 for number in range(10)]
    transaction = java.begin()
    send(producer, *values, transaction=transaction)
    assert outcome(transaction.commit()) == "done"
    send(producer, *values)
    assert texts(receive(consumer, 20)) == values * 2


def mode(name: str) -> dict[str, Any]:
    return {"accessMode": getattr(api("ProducerAccessMode"), name)}


def test_an_exclusive_producer_is_alone(java: JavaClient, other_java: JavaClient, topic: str) -> None:
    producer = java.producer(topic, **mode("Exclusive"))
    send(producer, "x")
    assert outcome(lambda: other_java.producer(topic)) == "ProducerBusyException"
    assert outcome(lambda: other_java.producer(topic, **mode("Exclusive"))) == "ProducerFencedException"
    producer.close()
    other_java.producer(topic)
    assert outcome(lambda: java.producer(topic, **mode("Exclusive"))) == "ProducerFencedException"


def test_a_producer_that_fences_the_others(java: JavaClient, other_java: JavaClient, topic: str) -> None:
    older = java.producer(topic, **mode("Exclusive"))
    newer = other_java.producer(topic, **mode("ExclusiveWithFencing"))
    send(newer, "new")
    assert outcome(send_async(older, "old")) == "ProducerFencedException"
    consumer = other_java.consumer(topic)
    send(newer, "last")
    assert texts(receive_upto(consumer, "last")) == ["new", "last"]


def test_a_producer_that_waits_until_it_is_alone(java: JavaClient, other_java: JavaClient, topic: str) -> None:
    older = java.producer(topic, **mode("Exclusive"))
    builder = other_java.client.newProducer().topic(topic).accessMode(mode("WaitForExclusive")["accessMode"])
    waiting = builder.createAsync()
    send(older, "old")
    assert not waiting.isDone()
    older.close()
    newer = waiting.get(*seconds(20))
    assert newer.getTopic() is not None
    send(newer, "new")
    assert texts(receive(java.consumer(topic), 2)) == ["old", "new"]


def test_two_producers_do_not_have_one_name(java: JavaClient, other_java: JavaClient, topic: str) -> None:
    java.producer(topic, producerName="p")
    assert outcome(lambda: other_java.producer(topic, producerName="p")) == "ProducerBusyException"


@pytest.mark.parametrize("batch", [1, 5], ids=["single", "batches"])
def test_repeats_are_dropped(java: JavaClient, topic: str, given: Any, batch: int) -> None:
    topic = given.deduplicating(topic)

    def producer() -> Any:
        options = {"producerName": "p", "sendTimeout": seconds(0)}
        return java.batching(topic, batch, **options) if batch > 1 else java.producer(topic, **options)

    def numbered(opened: Any, first: int, last: int) -> None:
        futures = [send_async(opened, f"{number}", sequenceId=number) for number in range(first, last + 1)]
        opened.flush()
        assert {outcome(each) for each in futures} == {"done"}

    consumer = java.consumer(topic)
    one = producer()
    numbered(one, 0, 9)
    assert int(one.getLastSequenceId()) == 9
    one.close()
    two = producer()
    assert int(two.getLastSequenceId()) == 9
    numbered(two, 5, 14)
    two.close()
    send(java.producer(topic), "last")
    assert texts(receive_upto(consumer, "last")) == [*(str(number) for number in range(15)), "last"]


def test_a_batch_of_each_key(java: JavaClient, topic: str) -> None:
    producer = java.batching(topic, 100, batcherBuilder=api("BatcherBuilder").KEY_BASED)
    consumer = java.consumer(topic, kind="Key_Shared")
    futures = [send_async(producer, f"{number}", key=f"k{number % 3}") for number in range(9)]
    producer.flush()
    assert {outcome(each) for each in futures} == {"done"}
    found = receive(consumer, 9)
    by_key: dict[str, list[str]] = {}
    for each in found:
        by_key.setdefault(str(each.getKey()), []).append(bytes(each.getData()).decode())
    assert by_key == {f"k{index}": [str(number) for number in range(index, 9, 3)] for index in range(3)}


def test_a_message_that_is_too_large_is_refused_by_the_client(java: JavaClient, topic: str) -> None:
    producer = java.producer(topic)
    with pytest.raises(jpype.JException):
        producer.send(jpype.JArray(jpype.JByte)(bytes(6 << 20)))
    send(producer, "small")
    assert texts(receive(java.consumer(topic), 1)) == ["small"]
