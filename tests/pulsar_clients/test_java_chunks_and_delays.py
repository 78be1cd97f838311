"""Large messages in chunks, delayed messages and encrypted ones by Pulsar's client for Java, also in transactions."""

import time

import pytest

from tests.pulsar_clients.brokers import on_topics_of_both_kinds
from tests.pulsar_clients.java import (
    JavaClient,
    api,
    java_keys,
    outcome,
    receive,
    receive_upto,
    seconds,
    send,
    send_async,
    texts,
)

CHUNK_BYTES = 64 << 10
LARGE = bytes(range(256)) * (4 * CHUNK_BYTES // 256) + b"end"


def chunking(java: JavaClient, topic: str, **options: object) -> object:
    """Open a producer that cuts what is large into chunks."""
    return java.producer(topic, enableChunking=True, chunkMaxMessageSize=CHUNK_BYTES, **options)


def test_a_large_message_arrives_whole(java: JavaClient, topic: str) -> None:
    consumer, producer = java.consumer(topic), chunking(java, topic)
    for value in (LARGE, b"small", LARGE[::-1]):
        assert outcome(send_async(producer, value)) == "done"
    assert [bytes(each.getData()) for each in receive(consumer, 3)] == [LARGE, b"small", LARGE[::-1]]


@on_topics_of_both_kinds
@pytest.mark.parametrize("kind", ["Exclusive", "Shared"])
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_a_large_message_in_a_transaction_arrives_whole_or_never(
    java: JavaClient, topic: str, kind: str, commit: bool
) -> None:
    consumer, producer = java.consumer(topic, kind=kind), chunking(java, topic)
    transaction = java.begin()
    assert outcome(send_async(producer, LARGE, transaction)) == "done"
    assert outcome(send_async(producer, b"small", transaction)) == "done"
    assert outcome(transaction.commit() if commit else transaction.abort()) == "done"
    send(producer, "last")
    found = [bytes(each.getData()) for each in receive(consumer, 3 if commit else 1)]
    assert found == ([LARGE, b"small", b"last"] if commit else [b"last"])


def test_large_messages_are_acknowledged_in_a_transaction(java: JavaClient, topic: str) -> None:
    consumer, producer = java.consumer(topic, kind="Shared"), chunking(java, topic)
    for value in (LARGE, LARGE[::-1]):
        assert outcome(send_async(producer, value)) == "done"
    for commit in (False, True):
        transaction = java.begin()
        found = receive(consumer, 2)
        assert sorted(bytes(each.getData()) for each in found) == sorted([LARGE, LARGE[::-1]])
        futures = [consumer.acknowledgeAsync(each.getMessageId(), transaction) for each in found]
        assert [outcome(each) for each in futures] == ["done"] * 2
        assert outcome(transaction.commit() if commit else transaction.abort()) == "done"
    send(producer, "last")
    assert texts(receive(consumer, 1)) == ["last"]


def test_a_delayed_message_comes_later(java: JavaClient, topic: str) -> None:
    consumer, producer = java.consumer(topic, kind="Shared"), java.producer(topic)
    began = time.monotonic()
    send(producer, "late", deliverAfter=seconds(2))
    send(producer, "at once")
    assert texts(receive(consumer, 1)) == ["at once"]
    assert time.monotonic() - began < 2
    assert texts(receive(consumer, 1)) == ["late"]
    assert time.monotonic() - began > 0.9, "its delay may end up to a second early"


def test_a_delay_counts_for_shared_subscriptions_only(java: JavaClient, topic: str) -> None:
    consumer, producer = java.consumer(topic, kind="Failover"), java.producer(topic)
    send(producer, "late", deliverAfter=seconds(60))
    assert texts(receive(consumer, 1)) == ["late"]


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_delayed_messages_in_a_transaction(java: JavaClient, topic: str, commit: bool) -> None:
    consumer, producer = java.consumer(topic, kind="Shared"), java.producer(topic)
    transaction = java.begin()
    began = time.monotonic()
    send(producer, "late", transaction=transaction, deliverAfter=seconds(2))
    send(producer, "at once", transaction=transaction)
    assert outcome(transaction.commit() if commit else transaction.abort()) == "done"
    send(producer, "last", deliverAfter=seconds(4))
    found = receive_upto(consumer, "last")
    assert time.monotonic() - began > 2.9
    assert texts(found) == [*(["at once", "late"] if commit else []), "last"]


def test_encrypted_payloads_pass_untouched(java: JavaClient, topic: str) -> None:
    keys, others = java_keys(), java_keys()
    producer = java.producer(topic, addEncryptionKey="k", cryptoKeyReader=keys)
    plain = java.consumer(topic, "with", cryptoKeyReader=keys)
    send(producer, "secret")
    transaction = java.begin()
    send(producer, "secret in a transaction", transaction=transaction)
    assert outcome(transaction.commit()) == "done"
    assert texts(receive(plain, 2)) == ["secret", "secret in a transaction"]
    consume = api("ConsumerCryptoFailureAction").CONSUME
    blind = java.consumer(topic, "without", cryptoKeyReader=others, cryptoFailureAction=consume)
    for message in receive(blind, 2):
        assert message.getEncryptionCtx().isPresent()
        assert b"secret" not in bytes(message.getData())
