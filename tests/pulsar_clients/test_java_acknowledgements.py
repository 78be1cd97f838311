"""Acknowledgements in transactions by Pulsar's client for Java, one by one and cumulative."""

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

from tests.pulsar_clients.brokers import ON_PULSAR
from tests.pulsar_clients.differences import told
from tests.pulsar_clients.java import (
    JavaClient,
    acknowledge,
    api,
    outcome,
    receive,
    receive_upto,
    send,
    text,
    texts,
)

COUNT = 60
KINDS = ("Exclusive", "Failover", "Shared", "Key_Shared")
ORDERED = ("Exclusive", "Failover")


def produced(java: JavaClient, topic: str, batch: int, count: int = COUNT) -> list[str]:
    """Send messages in batches, or one by one; return their values."""
    options = {"batcherBuilder": api("BatcherBuilder").DEFAULT} if batch > 1 else {}
    producer = java.batching(topic, batch, **options) if batch > 1 else java.producer(topic)
    values = [f"{number:03}" for number in range(count)]
    for index in range(0, count, batch):
        send(producer, *values[index : index + batch])
    producer.close()
    return values


def all_of(consumer: Any, count: int = COUNT) -> list[Any]:
    """Receive this many messages, in the order of their values."""
    return sorted(receive(consumer, count), key=text)


def nothing_but(java: JavaClient, topic: str, consumer: Any, before: Iterable[str] = ()) -> None:
    """Check that a subscription has nothing but what is named, in any order, before a message sent now."""
    producer = java.producer(topic)
    send(producer, "last")
    found = receive_upto(consumer, "last")
    assert sorted(texts(found)) == sorted([*before, "last"])
    assert acknowledge(consumer, found) == ["done"] * len(found)
    producer.close()


@pytest.mark.parametrize("batch", [1, 20], ids=["single", "batches"])
@pytest.mark.parametrize("kind", KINDS)
def test_acks_come_back_by_an_abort_and_stay_by_a_commit(java: JavaClient, topic: str, kind: str, batch: int) -> None:
    consumer = java.consumer(topic, kind=kind)
    values = produced(java, topic, batch)
    for _ in range(2):
        transaction = java.begin()
        found = all_of(consumer)
        assert texts(found) == values
        assert set(acknowledge(consumer, found, transaction)) == {"done"}
        assert outcome(transaction.abort()) == "done"
    transaction = java.begin()
    found = all_of(consumer)
    assert texts(found) == values
    assert set(acknowledge(consumer, found, transaction)) == {"done"}
    assert outcome(transaction.commit()) == "done"
    assert outcome(transaction.commit()) == "InvalidTxnStatusException", "the client itself says it"
    consumer.close()
    nothing_but(java, topic, java.consumer(topic, kind=kind))


@pytest.mark.parametrize("batch", [1, 20], ids=["single", "batches"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_pending_goes_to_nobody(java: JavaClient, topic: str, kind: str, batch: int) -> None:
    consumer = java.consumer(topic, kind=kind)
    values = produced(java, topic, batch)
    transaction = java.begin()
    found = all_of(consumer)
    assert set(acknowledge(consumer, found[::2], transaction)) == {"done"}
    consumer.close()  # what it has not acknowledged goes to the next one
    consumer = java.consumer(topic, kind=kind)
    nothing_but(java, topic, consumer, values[1::2])
    assert outcome(transaction.abort()) == "done"
    loses = batch > 1 and told("messages pending in a batch whose others were acknowledged are lost")
    nothing_but(java, topic, consumer, [] if loses else values[::2])


@pytest.mark.parametrize("batch", [1, 20], ids=["single", "batches"])
@pytest.mark.parametrize("kind", KINDS)
def test_two_transactions_do_not_get_one_message(java: JavaClient, topic: str, kind: str, batch: int) -> None:
    consumer = java.consumer(topic, kind=kind)
    produced(java, topic, batch)
    one, two = java.begin(), java.begin()
    [first, *rest] = all_of(consumer)
    assert acknowledge(consumer, [first], one) == ["done"]
    assert acknowledge(consumer, [first], two) == ["TransactionConflictException"]
    assert acknowledge(consumer, rest[:1], two) == ["done"]
    assert outcome(two.commit()) == "TransactionHasOperationFailedException", "the client aborts it"
    assert outcome(one.commit()) == "done"
    consumer.close()
    nothing_but(java, topic, java.consumer(topic, kind=kind), [text(each) for each in rest])


def test_what_is_acknowledged_cannot_be_again_in_a_transaction(java: JavaClient, topic: str) -> None:
    consumer = java.consumer(topic, kind="Shared")
    produced(java, topic, 1, 2)
    [first, second] = all_of(consumer, 2)
    assert acknowledge(consumer, [second]) == ["done"]
    assert acknowledge(consumer, [second], java.begin()) == ["TransactionConflictException"]
    transaction = java.begin()
    assert acknowledge(consumer, [first], transaction) == ["done"]
    assert acknowledge(consumer, [first], transaction) == ["TransactionConflictException"]


@pytest.mark.parametrize("batch", [1, 20], ids=["single", "batches"])
@pytest.mark.parametrize("kind", ORDERED)
def test_cumulative_acks_come_back_by_an_abort_and_stay_by_a_commit(
    java: JavaClient, topic: str, kind: str, batch: int
) -> None:
    consumer = java.consumer(topic, kind=kind)
    values = produced(java, topic, batch)
    for _ in range(2):
        transaction = java.begin()
        found = receive(consumer, COUNT)
        assert texts(found) == values
        for each in itertools.islice(found, 9, None, 10):
            assert outcome(consumer.acknowledgeCumulativeAsync(each.getMessageId(), transaction)) == "done"
        assert outcome(transaction.abort()) == "done"
        consumer.redeliverUnacknowledgedMessages()  # as its users do, since the client does not tell it
    transaction = java.begin()
    found = receive(consumer, COUNT)
    assert texts(found) == values
    assert outcome(consumer.acknowledgeCumulativeAsync(found[-1].getMessageId(), transaction)) == "done"
    assert outcome(transaction.commit()) == "done"
    consumer.close()
    nothing_but(java, topic, java.consumer(topic, kind=kind))


@pytest.mark.skipif(ON_PULSAR, reason="its clients must ask for everything again")
@pytest.mark.parametrize("times_out", [False, True])
@pytest.mark.parametrize("kind", ORDERED)
def test_what_an_abort_gives_back_comes_by_itself(java: JavaClient, topic: str, kind: str, times_out: bool) -> None:
    consumer = java.consumer(topic, kind=kind)
    values = produced(java, topic, 1)
    transaction = java.begin(1 if times_out else 60)
    found = receive(consumer, COUNT)
    assert outcome(consumer.acknowledgeCumulativeAsync(found[9].getMessageId(), transaction)) == "done"
    if not times_out:
        assert outcome(transaction.abort()) == "done"
    again = receive(consumer, COUNT)
    assert texts(again) == values, "the broker has closed the consumer, and the client has come back"
    transaction = java.begin()
    assert outcome(consumer.acknowledgeCumulativeAsync(again[-1].getMessageId(), transaction)) == "done"
    assert outcome(transaction.commit()) == "done"
    consumer.close()
    nothing_but(java, topic, java.consumer(topic, kind=kind))


@pytest.mark.parametrize("batch", [1, 20], ids=["single", "batches"])
@pytest.mark.parametrize("kind", ORDERED)
def test_one_transaction_acknowledges_cumulatively_at_a_time(
    java: JavaClient, topic: str, kind: str, batch: int
) -> None:
    consumer = java.consumer(topic, kind=kind)
    produced(java, topic, batch)
    found = [each.getMessageId() for each in receive(consumer, COUNT)]
    one, two = java.begin(), java.begin()

    def upto(index: int, transaction: Any) -> str:
        return outcome(consumer.acknowledgeCumulativeAsync(found[index], transaction))

    assert upto(29, one) == "done"
    assert [upto(index, two) for index in (9, 29, 49)] == ["TransactionConflictException"] * 3
    assert outcome(two.abort()) == "done"
    assert upto(39, one) == "done"
    assert outcome(one.commit()) == "done"
    three = java.begin()
    assert [upto(index, three) for index in (19, 39)] == ["TransactionConflictException"] * 2, "acknowledged already"
    assert outcome(three.abort()) == "done"
    consumer.close()
    consumer = java.consumer(topic, kind=kind)
    assert texts(receive(consumer, 20)) == [f"{number:03}" for number in range(40, 60)]


def test_a_lower_cumulative_ack_in_the_same_transaction(java: JavaClient, topic: str) -> None:
    consumer = java.consumer(topic)
    produced(java, topic, 1)
    found = [each.getMessageId() for each in receive(consumer, COUNT)]
    transaction = java.begin()
    assert outcome(consumer.acknowledgeCumulativeAsync(found[29], transaction)) == "done"
    said = [outcome(consumer.acknowledgeCumulativeAsync(found[index], transaction)) for index in (29, 9)]
    assert said == ["TransactionConflictException"] * 2


def test_single_and_cumulative_acks_of_two_transactions(java: JavaClient, topic: str) -> None:
    consumer = java.consumer(topic)
    produced(java, topic, 1)
    found = [each.getMessageId() for each in receive(consumer, COUNT)]
    one, two, three = java.begin(), java.begin(), java.begin()
    assert outcome(consumer.acknowledgeAsync(found[5], one)) == "done"
    assert outcome(consumer.acknowledgeCumulativeAsync(found[9], two)) == told("a cumulative ack over a pending one")
    assert outcome(consumer.acknowledgeCumulativeAsync(found[3], three)) == told("a cumulative ack below a pending one")


def test_one_transaction_acknowledges_for_two_subscriptions(java: JavaClient, topic: str) -> None:
    consumers = [java.consumer(topic, name, kind="Shared") for name in ("one", "two")]
    values = produced(java, topic, 1)
    for commit in (False, True):
        transaction = java.begin()
        for consumer in consumers:
            found = all_of(consumer)
            assert texts(found) == values
            assert set(acknowledge(consumer, found, transaction)) == {"done"}
        assert outcome(transaction.commit() if commit else transaction.abort()) == "done"
    for consumer in consumers:
        nothing_but(java, topic, consumer)


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_acks_and_messages_end_together(java: JavaClient, topic: str, commit: bool) -> None:
    consumer = java.consumer(topic, kind="Shared")
    values = produced(java, topic, 1, 10)
    output = f"{topic}-output"
    reader = java.consumer(output)
    producer = java.producer(output)
    transaction = java.begin()
    for message in receive(consumer, 10):
        send(producer, f"{text(message)}!", transaction=transaction)
        assert acknowledge(consumer, [message], transaction) == ["done"]
    assert outcome(transaction.commit() if commit else transaction.abort()) == "done"
    send(producer, "last")
    wanted = [f"{value}!" for value in values] if commit else []
    assert texts(receive_upto(reader, "last")) == [*wanted, "last"]
    nothing_but(java, topic, consumer, [] if commit else values)


def test_a_transaction_that_takes_too_long_is_aborted_with_its_acks(java: JavaClient, topic: str) -> None:
    consumer = java.consumer(topic, kind="Shared")
    values = produced(java, topic, 1, 10)
    output = f"{topic}-output"
    reader, producer = java.consumer(output), java.producer(output)
    transaction = java.begin(timeout_s=2)
    found = all_of(consumer, 10)
    assert set(acknowledge(consumer, found, transaction)) == {"done"}
    send(producer, "in it", transaction=transaction)
    send(producer, "last")
    assert texts(all_of(consumer, 10)) == values
    assert texts(receive_upto(reader, "last")) == ["last"]
    assert java.end(transaction, commit=True) == told("a commit after the time-out")


def test_a_plain_ack_of_a_pending_message_wins(java: JavaClient, topic: str) -> None:
    consumer = java.consumer(topic, kind="Shared")
    values = produced(java, topic, 1, 2)
    found = all_of(consumer, 2)
    transaction = java.begin()
    assert acknowledge(consumer, found, transaction) == ["done", "done"]
    assert acknowledge(consumer, found[:1]) == ["done"]
    assert outcome(transaction.abort()) == "done"
    nothing_but(java, topic, consumer, values[1:])


@pytest.mark.parametrize("kind", ["Shared", "Exclusive"])
def test_a_redelivery_brings_nothing_pending_back(java: JavaClient, topic: str, kind: str) -> None:
    consumer = java.consumer(topic, kind=kind)
    values = produced(java, topic, 1, 10)
    found = all_of(consumer, 10)
    transaction = java.begin()
    assert set(acknowledge(consumer, found[:5], transaction)) == {"done"}
    consumer.redeliverUnacknowledgedMessages()
    nothing_but(java, topic, consumer, values[5:])
    assert outcome(transaction.commit()) == "done"
    nothing_but(java, topic, consumer)


def test_each_abort_counts_as_a_delivery(java: JavaClient, topic: str) -> None:
    consumer = java.consumer(topic, kind="Shared")
    produced(java, topic, 1, 1)
    counts = []
    for _ in range(4):
        [message] = receive(consumer, 1)
        counts.append(int(message.getRedeliveryCount()))
        transaction = java.begin()
        assert acknowledge(consumer, [message], transaction) == ["done"]
        assert outcome(transaction.abort()) == "done"
    assert counts == [0, 1, 2, 3]


@pytest.mark.parametrize("batch", [1, 5], ids=["single", "batches"])
def test_what_is_aborted_too_often_is_a_dead_letter(java: JavaClient, topic: str, batch: int) -> None:
    policy = api("DeadLetterPolicy").builder().maxRedeliverCount(2).deadLetterTopic(f"{topic}-dead").build()
    consumer = java.consumer(topic, kind="Shared", deadLetterPolicy=policy)
    dead = java.consumer(f"{topic}-dead")
    values = produced(java, topic, batch, 5)
    for _ in range(3):
        transaction = java.begin()
        found = all_of(consumer, 5)
        assert texts(found) == values
        assert set(acknowledge(consumer, found, transaction)) == {"done"}
        assert outcome(transaction.abort()) == "done"
    # The client sends the fourth delivery on, when it is asked for messages.
    assert consumer.receiveAsync().isDone() is False
    assert sorted(texts(receive(dead, 5))) == values
