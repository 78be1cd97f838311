"""Redelivery, by Pulsar's client for Java: negative acks, time-outs, retries, dead letters, priorities."""

from typing import Any

import pytest

from tests.pulsar_clients.java import (
    JavaClient,
    acknowledge,
    api,
    outcome,
    receive,
    receive_upto,
    seconds,
    send,
    text,
    texts,
)


def counts(messages: list[Any]) -> list[int]:
    """Return how often each was delivered before."""
    return [int(each.getRedeliveryCount()) for each in messages]


@pytest.mark.parametrize("kind", ["Shared", "Key_Shared"])
def test_a_negative_ack_brings_a_message_again(java: JavaClient, topic: str, kind: str) -> None:
    consumer = java.consumer(topic, kind=kind, negativeAckRedeliveryDelay=seconds(0.1))
    send(java.producer(topic), "a", "b", "c")
    [first, second, third] = receive(consumer, 3)
    assert acknowledge(consumer, [first, third]) == ["done"] * 2
    for count in (1, 2):
        consumer.negativeAcknowledge(second)
        [second] = receive(consumer, 1)
        assert (text(second), counts([second])) == ("b", [count])


def test_a_negative_ack_on_an_exclusive_subscription(java: JavaClient, topic: str) -> None:
    consumer = java.consumer(topic, negativeAckRedeliveryDelay=seconds(0.1))
    send(java.producer(topic), "a", "b", "c")
    [first, second, third] = receive(consumer, 3)
    assert acknowledge(consumer, [first, third]) == ["done"] * 2
    consumer.negativeAcknowledge(second)
    again = receive(consumer, 1)
    assert (texts(again), counts(again)) == (["b"], [0]), "such a subscription counts nothing"


def test_what_is_not_acknowledged_in_time_comes_again(java: JavaClient, topic: str) -> None:
    consumer = java.consumer(topic, kind="Shared", ackTimeout=seconds(1), ackTimeoutTickTime=seconds(0.2))
    send(java.producer(topic), "a", "b")
    found = receive(consumer, 2)
    assert acknowledge(consumer, found[:1]) == ["done"]
    again = receive(consumer, 1)
    assert (texts(again), counts(again)) == (["b"], [1])


@pytest.mark.parametrize("kind", ["Exclusive", "Failover", "Shared", "Key_Shared"])
def test_all_that_is_not_acknowledged_comes_again(java: JavaClient, topic: str, kind: str) -> None:
    consumer = java.consumer(topic, kind=kind)
    producer = java.producer(topic)
    send(producer, *"abcd")
    found = sorted(receive(consumer, 4), key=text)
    assert acknowledge(consumer, found[1:3]) == ["done"] * 2
    consumer.redeliverUnacknowledgedMessages()
    again = sorted(receive(consumer, 2), key=text)
    assert texts(again) == ["a", "d"]
    assert counts(again) == ([1, 1] if "Shared" in kind else [0, 0])


def test_what_a_consumer_leaves_goes_to_the_others(java: JavaClient, topic: str) -> None:
    one = java.consumer(topic, kind="Shared", receiverQueueSize=10)
    send(java.producer(topic), *"abcd")
    found = receive(one, 4)
    two = java.consumer(topic, kind="Shared")
    assert acknowledge(one, found[:1]) == ["done"]
    one.close()
    again = receive(two, 3)
    assert (sorted(texts(again)), counts(again)) == (["b", "c", "d"], [0] * 3), "closing counts as no delivery"


@pytest.mark.parametrize("kind", ["Exclusive", "Shared"])
def test_messages_of_a_batch_are_acknowledged_one_by_one(java: JavaClient, topic: str, kind: str) -> None:
    consumer = java.consumer(topic, kind=kind)
    send(java.batching(topic, 10), *"abcdefghij")
    found = receive(consumer, 10)
    assert acknowledge(consumer, found[::3]) == ["done"] * 4
    consumer.close()
    consumer = java.consumer(topic, kind=kind)
    again = receive(consumer, 6)
    assert texts(again) == list("bcefhi")
    assert acknowledge(consumer, again) == ["done"] * 6
    consumer.close()
    consumer = java.consumer(topic, kind=kind)
    send(java.producer(topic), "last")
    assert texts(receive(consumer, 1)) == ["last"]


def test_without_acks_of_its_messages_a_batch_comes_again_as_a_whole(java: JavaClient, topic: str) -> None:
    options: dict[str, Any] = {"enableBatchIndexAcknowledgment": False}
    consumer = java.consumer(topic, kind="Shared", **options)
    send(java.batching(topic, 4), *"abcd")
    found = receive(consumer, 4)
    acknowledge(consumer, found[:3])
    consumer.close()
    consumer = java.consumer(topic, kind="Shared", **options)
    found = receive(consumer, 4)
    assert texts(found) == list("abcd")
    for each in found:
        consumer.acknowledgeAsync(each)
    consumer.close()
    consumer = java.consumer(topic, kind="Shared", **options)
    send(java.producer(topic), "last")
    assert texts(receive(consumer, 1)) == ["last"]


@pytest.mark.parametrize("receipts", [True, False], ids=["receipts", "none"])
def test_acks_that_are_grouped(java: JavaClient, topic: str, receipts: bool) -> None:
    options: dict[str, Any] = {"acknowledgmentGroupTime": seconds(0.05), "isAckReceiptEnabled": receipts}
    consumer = java.consumer(topic, kind="Shared", **options)
    producer = java.producer(topic)
    send(producer, *(str(number) for number in range(100)))
    futures = [consumer.acknowledgeAsync(each) for each in receive(consumer, 100)]
    assert {outcome(each) for each in futures} == {"done"}
    consumer.close()
    send(producer, "last")
    assert texts(receive(java.consumer(topic, kind="Shared"), 1)) == ["last"]


def test_a_list_is_acknowledged_at_once(java: JavaClient, topic: str) -> None:
    from tests.pulsar_clients.java import java as java_class

    consumer = java.consumer(topic, kind="Shared")
    producer = java.producer(topic)
    send(producer, *"abcd")
    for transaction in (java.begin(), None):
        ids = java_class("java.util.ArrayList")([each.getMessageId() for each in receive(consumer, 4)])
        more = () if transaction is None else (transaction,)
        assert outcome(consumer.acknowledgeAsync(ids, *more)) == "done"
        if transaction is not None:
            assert outcome(transaction.abort()) == "done"
    send(producer, "last")
    assert texts(receive_upto(consumer, "last")) == ["last"]


def test_what_is_refused_too_often_is_a_dead_letter(java: JavaClient, topic: str) -> None:
    policy = api("DeadLetterPolicy").builder().maxRedeliverCount(2).deadLetterTopic(f"{topic}-dead").build()
    dead = java.consumer(f"{topic}-dead")
    consumer = java.consumer(topic, kind="Shared", deadLetterPolicy=policy, negativeAckRedeliveryDelay=seconds(0.1))
    producer = java.producer(topic)
    send(producer, "bad", key="k", property=("p", "1"))
    for _ in range(3):
        [found] = receive(consumer, 1)
        consumer.negativeAcknowledge(found)
    waiting = consumer.receiveAsync()
    [letter] = receive(dead, 1)
    assert (text(letter), str(letter.getKey()), str(letter.getProperty("p"))) == ("bad", "k", "1")
    send(producer, "good")
    assert text(waiting.get(*seconds(20))) == "good"


def test_a_message_is_consumed_again_later(java: JavaClient, topic: str) -> None:
    policy = api("DeadLetterPolicy").builder().maxRedeliverCount(2)
    policy = policy.retryLetterTopic(f"{topic}-retry").deadLetterTopic(f"{topic}-dead").build()
    dead = java.consumer(f"{topic}-dead")
    consumer = java.consumer(topic, kind="Shared", enableRetry=True, deadLetterPolicy=policy)
    send(java.producer(topic), "bad")
    for _ in range(3):
        [found] = receive(consumer, 1)
        assert text(found) == "bad"
        assert outcome(consumer.reconsumeLaterAsync(found, *seconds(0.2))) == "done"
    assert texts(receive(dead, 1)) == ["bad"]


def test_consumers_of_the_first_priority_are_served_first(java: JavaClient, topic: str) -> None:
    first = java.consumer(topic, kind="Shared", priorityLevel=0, receiverQueueSize=5)
    second = java.consumer(topic, kind="Shared", priorityLevel=1, receiverQueueSize=5)
    send(java.producer(topic), *(str(number) for number in range(8)))
    found = receive(second, 3)
    assert len(receive(first, 5)) == 5, "until it had no permits"
    assert sorted(texts(found)) == ["5", "6", "7"]
