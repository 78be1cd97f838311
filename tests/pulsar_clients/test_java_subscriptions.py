"""Subscriptions by Pulsar's client for Java: their types, who is active, keys, patterns and several topics."""

from collections import defaultdict
from typing import Any

import jpype
import pytest

from tests.pulsar_clients.brokers import ON_PULSAR, Given
from tests.pulsar_clients.differences import told
from tests.pulsar_clients.java import (
    JavaClient,
    acknowledge,
    api,
    outcome,
    receive,
    seconds,
    send,
    text,
    texts,
)
from tests.pulsar_clients.java import (
    java as java_class,
)


def test_an_exclusive_subscription_has_one_consumer(java: JavaClient, other_java: JavaClient, topic: str) -> None:
    consumer = java.consumer(topic)
    assert outcome(lambda: other_java.consumer(topic)) == "ConsumerBusyException"
    assert outcome(lambda: other_java.consumer(topic, kind="Shared")) == "ConsumerBusyException"
    consumer.close()
    other_java.consumer(topic, kind="Shared")


def test_unsubscribing_forgets_what_was_acknowledged(java: JavaClient, topic: str) -> None:
    producer, consumer = java.producer(topic), java.consumer(topic)
    send(producer, "a", "b")
    assert acknowledge(consumer, receive(consumer, 2)) == ["done"] * 2
    consumer.unsubscribe()
    assert texts(receive(java.consumer(topic), 2)) == ["a", "b"]


def test_a_subscription_with_others_is_not_unsubscribed(java: JavaClient, topic: str) -> None:
    one, two = (java.consumer(topic, kind="Shared") for _ in range(2))
    assert outcome(one.unsubscribeAsync()) == told("unsubscribing while others are there")
    two.close()
    assert outcome(one.unsubscribeAsync()) == "done"


def test_unsubscribing_with_a_transaction_open(java: JavaClient, topic: str) -> None:
    producer, consumer = java.producer(topic), java.consumer(topic)
    send(producer, "a", "b")
    found = receive(consumer, 2)
    transaction = java.begin()
    assert acknowledge(consumer, found[:1], transaction) == ["done"]
    consumer.unsubscribe()
    assert outcome(transaction.commit()) == "done"
    assert texts(receive(java.consumer(topic), 2)) == ["a", "b"]


def test_the_active_consumer_changes(java: JavaClient, topic: str) -> None:
    changes = java_class("java.util.concurrent.LinkedBlockingQueue")()

    def consumer(name: str) -> Any:
        listener = {
            "becameActive": lambda consumer, index: changes.add(f"{name} is active"),
            "becameInactive": lambda consumer, index: changes.add(f"{name} is not"),
        }
        proxy = jpype.JProxy(api("ConsumerEventListener"), dict=listener)
        return java.consumer(topic, kind="Failover", consumerName=name, consumerEventListener=proxy)

    def wait(*wanted: str) -> str:
        while (found := changes.poll(*seconds(20))) not in wanted:
            assert found is not None, f"not told: {wanted}"
        return str(found)

    consumers = {"a": consumer("a")}
    wait("a is active")
    consumers["b"] = consumer("b")
    # Which of the two it is, Apache Pulsar decides by hashes of their names.
    active, other = ("a", "b") if wait("b is active", "b is not") == "b is not" else ("b", "a")
    producer = java.producer(topic)
    send(producer, "x", "y")
    found = receive(consumers[active], 2)
    assert acknowledge(consumers[active], found[:1]) == ["done"]
    changes.clear()
    consumers[active].close()
    wait(f"{other} is active")
    assert texts(receive(consumers[other], 1)) == ["y"]


def test_a_consumer_of_a_higher_priority_becomes_active(java: JavaClient, topic: str) -> None:
    low = java.consumer(topic, kind="Failover", priorityLevel=1, consumerName="a")
    producer = java.producer(topic)
    send(producer, "x")
    assert acknowledge(low, receive(low, 1)) == ["done"]
    high = java.consumer(topic, kind="Failover", priorityLevel=0, consumerName="b")
    send(producer, "y")
    assert texts(receive(high, 1)) == ["y"]


def test_keys_stay_in_order_with_consumers_that_come_and_go(java: JavaClient, topic: str) -> None:
    keys, count = [f"key-{index}" for index in range(12)], 400
    producer = java.producer(topic)
    consumers = [java.consumer(topic, kind="Key_Shared", receiverQueueSize=20) for _ in range(2)]
    for number in range(count):
        producer.newMessage().key(keys[number % 12]).value(jpype.JArray(jpype.JByte)(b"%d" % number)).sendAsync()
    producer.flush()
    got: dict[str, list[int]] = defaultdict(list)
    holders: dict[str, set[int]] = defaultdict(set)
    done, turn = 0, 0
    while done < count:
        turn += 1
        if turn == 20:
            consumers.append(java.consumer(topic, kind="Key_Shared", receiverQueueSize=20))
        if turn == 40:
            consumers.pop(0).close()
        for consumer in consumers:
            message = consumer.receive(*seconds(0.05))
            if message is None:
                continue
            key = str(message.getKey())
            got[key].append(int(text(message)))
            holders[key].add(id(consumer))
            assert outcome(consumer.acknowledgeAsync(message)) == "done"
            done += 1
    assert got == {key: list(range(index, count, 12)) for index, key in enumerate(keys)}


def test_sticky_ranges_get_their_keys(java: JavaClient, topic: str) -> None:
    sticky, span = api("KeySharedPolicy"), api("Range")

    def consumer(first: int, last: int) -> Any:
        policy = sticky.stickyHashRange().ranges(jpype.JArray(span)([span.of(first, last)]))
        return java.consumer(topic, kind="Key_Shared", keySharedPolicy=policy)

    low, high = consumer(0, 32767), consumer(32768, 65535)
    with pytest.raises(jpype.JException):
        consumer(100, 200)
    producer = java.producer(topic)
    keys = [f"key-{index}" for index in range(20)]
    for key in keys * 2:
        send(producer, key, key=key)
    found: dict[str, set[str]] = {"low": set(), "high": set()}
    for name, each in (("low", low), ("high", high)):
        while (message := each.receive(*seconds(0.5))) is not None:
            found[name].add(text(message))
    assert found["low"] | found["high"] == set(keys)
    assert found["low"]
    assert found["high"]
    assert not found["low"] & found["high"]


@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "Failover", "Key_Shared"])
def test_a_partitioned_topic_in_a_transaction(java: JavaClient, topic: str, given: Any, kind: str) -> None:
    given.create_partitioned(topic, 3)
    consumer = java.consumer(topic, kind=kind)
    producer = java.producer(topic)
    values = [str(number) for number in range(30)]
    for commit in (False, True):
        transaction = java.begin()
        for value in values:
            send(producer, value, transaction=transaction, key=value)
        assert outcome(transaction.commit() if commit else transaction.abort()) == "done"
    for commit in (False, True):
        transaction = java.begin()
        found = receive(consumer, 30)
        assert sorted(texts(found), key=int) == values
        assert set(acknowledge(consumer, found, transaction)) == {"done"}
        assert outcome(transaction.commit() if commit else transaction.abort()) == "done"
    consumer.close()
    consumer = java.consumer(topic, kind=kind)
    for value in values:
        send(producer, f"new {value}", key=value)
    assert sorted(texts(receive(consumer, 30))) == sorted(f"new {value}" for value in values)


def test_several_topics(java: JavaClient, topic: str) -> None:
    topics = [f"{topic}-{index}" for index in range(3)]
    producers = [java.producer(each) for each in topics]
    builder = java.client.newConsumer().topic(*topics).subscriptionName("s")
    builder = builder.subscriptionInitialPosition(api("SubscriptionInitialPosition").Earliest)
    consumer = builder.subscribe()
    for number in range(9):
        send(producers[number % 3], str(number))
    found = receive(consumer, 9)
    assert sorted(texts(found)) == [str(number) for number in range(9)]
    assert {str(each.getTopicName()).rsplit("/", 1)[-1] for each in found} == set(topics)


def test_topics_by_a_pattern(java: JavaClient, topic: str) -> None:
    wanted = [f"{topic}-a{index}" for index in range(2)]
    for each in (*wanted, f"{topic}-b"):
        send(java.producer(each), each)
    builder = java.client.newConsumer().topicsPattern(f"persistent://public/default/{topic}-a.*")
    builder = builder.subscriptionInitialPosition(api("SubscriptionInitialPosition").Earliest)
    consumer = builder.patternAutoDiscoveryPeriod(1, seconds(1)[1].SECONDS).subscriptionName("s").subscribe()
    assert sorted(texts(receive(consumer, 2))) == wanted
    later = f"{topic}-a2"
    send(java.producer(later), later)
    assert texts(receive(consumer, 1)) == [later]


@pytest.mark.skipif(ON_PULSAR, reason="there the consumers are dead")
@pytest.mark.parametrize("kind", ["Exclusive", "Shared"])
def test_a_partitioned_topic_that_is_deleted_and_created_again(
    java: JavaClient, given: Given, topic: str, kind: str
) -> None:
    """After TopicNotFound, which others are told, the client would let the consumers be dead, and tell nobody."""
    given.create_partitioned(topic, 2)
    consumer, producer = java.consumer(topic, kind=kind), java.producer(topic)
    send(producer, "a", "b")
    found = receive(consumer, 2)
    assert sorted(texts(found)) == ["a", "b"]
    given.delete(topic)
    assert consumer.receive(*seconds(1)) is None, "the client hears that it is gone, and tries to come back"
    given.create_partitioned(topic, 2)
    again = java.producer(topic)
    send(again, "c", "d")
    assert sorted(texts(receive(consumer, 2))) == ["c", "d"]


def test_properties_keys_and_times_arrive(java: JavaClient, topic: str) -> None:
    consumer, producer = java.consumer(topic), java.producer(topic, property=("of", "producer"), producerName=topic)
    send(producer, "v", key="k", orderingKey=java_bytes(b"o"), eventTime=1234, property=("a", "1"), sequenceId=7)
    [found] = receive(consumer, 1)
    assert (str(found.getKey()), bytes(found.getOrderingKey()), int(found.getEventTime())) == ("k", b"o", 1234)
    assert (str(found.getProperty("a")), int(found.getSequenceId()), str(found.getProducerName())) == ("1", 7, topic)
    assert int(found.getPublishTime()) > 0


def java_bytes(value: bytes) -> Any:
    return jpype.JArray(jpype.JByte)(value)


def test_strings_by_a_schema(java: JavaClient, topic: str) -> None:
    schema = api("Schema").STRING
    consumer = java.client.newConsumer(schema).topic(topic).subscriptionName("s").subscribe()
    producer = java.client.newProducer(schema).topic(topic).create()
    producer.send("a string")
    assert str(consumer.receive(*seconds(20)).getValue()) == "a string"
