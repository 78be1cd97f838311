"""Transactions by Pulsar's client for Java: what is sent in them, and how they end."""

import pytest

from tests.pulsar_clients.brokers import Given, broker_under_test, on_topics_of_both_kinds
from tests.pulsar_clients.differences import told
from tests.pulsar_clients.java import (
    JavaClient,
    acknowledge,
    outcome,
    receive,
    receive_upto,
    send,
    send_async,
    texts,
)

COUNT = 200


@on_topics_of_both_kinds
@pytest.mark.parametrize("batch", [1, 10], ids=["single", "batches"])
def test_two_interleaved_transactions_are_committed(given: Given, java: JavaClient, topic: str, batch: int) -> None:
    consumer = java.consumer(topic)
    one, two = java.begin(), java.begin()
    # The client mixes transactions in a batch that is not sent yet: each has a producer.
    producers = [java.batching(topic, batch) if batch > 1 else java.producer(topic) for _ in range(2)]
    for index in range(0, COUNT, batch):
        values = [f"{number}" for number in range(index, index + batch)]
        which = index // batch % 2
        send(producers[which], *values, transaction=(one, two)[which])
    assert outcome(two.commit()) == "done"
    assert outcome(one.commit()) == "done"
    wanted = list(range(COUNT))
    if given.is_sidecar:  # in the order of the commits, and not of sending
        wanted.sort(key=lambda number: number // batch % 2 == 0)
    assert texts(receive(consumer, COUNT)) == [str(number) for number in wanted]


@on_topics_of_both_kinds
@pytest.mark.parametrize("batch", [1, 10], ids=["single", "batches"])
def test_nothing_of_an_aborted_transaction_arrives(java: JavaClient, topic: str, batch: int) -> None:
    consumer = java.consumer(topic)
    kept, dropped = java.begin(), java.begin()
    producer = java.batching(topic, batch) if batch > 1 else java.producer(topic)
    for index in range(0, COUNT, batch):
        values = [f"{number}" for number in range(index, index + batch)]
        send(producer, *values, transaction=(kept, dropped)[index // batch % 2])
    assert outcome(dropped.abort()) == "done"
    assert outcome(kept.commit()) == "done"
    send(producer, "last")
    wanted = [str(number) for number in range(COUNT) if number // batch % 2 == 0]
    assert texts(receive_upto(consumer, "last")) == [*wanted, "last"]


@on_topics_of_both_kinds
def test_an_open_transaction_holds_back_what_follows_it(given: Given, java: JavaClient, topic: str) -> None:
    consumer, producer = java.consumer(topic), java.producer(topic)
    transaction = java.begin()
    send(producer, "before")
    send(producer, "in it", transaction=transaction)
    send(producer, "after")
    early, late = (["before", "after"], ["in it"]) if given.is_sidecar else (["before"], ["in it", "after"])
    assert texts(receive(consumer, len(early))) == early
    assert outcome(transaction.commit()) == "done"
    assert texts(receive(consumer, len(late))) == late


@on_topics_of_both_kinds
def test_what_was_sent_in_order_arrives_in_order(java: JavaClient, topic: str) -> None:
    consumer, producer = java.consumer(topic), java.producer(topic)
    wanted = []
    for number in range(20):
        transaction = java.begin()
        futures = [send_async(producer, f"{number}-{index}", transaction) for index in range(10)]
        # Not one of them was waited for: the end itself waits for all.
        assert outcome(transaction.commit()) == "done"
        assert all(each.isDone() for each in futures)
        wanted += [f"{number}-{index}" for index in range(10)]
    assert texts(receive(consumer, len(wanted))) == wanted


@on_topics_of_both_kinds
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_another_client_ends_what_a_client_began(
    java: JavaClient, other_java: JavaClient, topic: str, commit: bool
) -> None:
    consumer, producer = other_java.consumer(topic), java.producer(topic)
    begun = [java.begin() for _ in range(20)]
    for number, transaction in enumerate(begun):
        send(producer, str(number), transaction=transaction)
    java.close()
    assert [other_java.end(each, commit=commit) for each in begun] == ["done"] * 20
    send(other_java.producer(topic), "last")
    wanted = [str(number) for number in range(20)] if commit else []
    assert texts(receive_upto(consumer, "last")) == [*wanted, "last"]


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_an_end_that_is_asked_for_again(java: JavaClient, topic: str, commit: bool) -> None:
    transaction = java.begin()
    send(java.producer(topic), "x", transaction=transaction)
    assert java.end(transaction, commit=commit) == "done"
    assert java.end(transaction, commit=commit) == told("the same end again")
    assert java.end(transaction, commit=not commit) == told("the other end")


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_a_strict_broker_has_forgotten_what_ended(topic: str, commit: bool) -> None:
    with broker_under_test(pulsar_transaction_repeat="strict") as strict:
        java = JavaClient(strict.url)
        transaction = java.begin()
        assert java.end(transaction, commit=commit) == "done"
        assert java.end(transaction, commit=commit) == "TransactionNotFoundException"
        java.close()


def test_one_that_nobody_began_cannot_be_ended(java: JavaClient) -> None:
    assert java.end(java.begin(), commit=True, least=1 << 40) == "TransactionNotFoundException"


def test_an_empty_transaction_ends(java: JavaClient) -> None:
    assert outcome(java.begin().commit()) == "done"
    assert outcome(java.begin().abort()) == "done"


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_the_client_refuses_what_comes_after_the_end(java: JavaClient, topic: str, commit: bool) -> None:
    consumer, producer = java.consumer(topic), java.producer(topic)
    send(producer, "first")
    transaction = java.begin()
    send(producer, "in it", transaction=transaction)
    assert outcome(transaction.commit() if commit else transaction.abort()) == "done"
    assert outcome(send_async(producer, "late", transaction)) == "InvalidTxnStatusException"
    assert acknowledge(consumer, receive(consumer, 1), transaction) == ["InvalidTxnStatusException"]
    assert outcome(transaction.commit()) == "InvalidTxnStatusException"
    assert outcome(transaction.abort()) == "InvalidTxnStatusException"


@on_topics_of_both_kinds
def test_a_transaction_spans_topics(java: JavaClient, topic: str) -> None:
    topics = [f"{topic}-{index}" for index in range(5)]
    consumers = [java.consumer(each) for each in topics]
    producers = [java.producer(each) for each in topics]
    dropped, kept = java.begin(), java.begin()
    for producer in producers:
        send(producer, "dropped", transaction=dropped)
        send(producer, "kept", transaction=kept)
    assert outcome(dropped.abort()) == "done"
    assert outcome(kept.commit()) == "done"
    assert [texts(receive(each, 1)) for each in consumers] == [["kept"]] * 5
