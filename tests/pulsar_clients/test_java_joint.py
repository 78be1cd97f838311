"""Pulsar's client for Java in one transaction with a producer of librdkafka's, opened and ended by either."""

from typing import Any

import pytest

from tests.pulsar.joint import committed_of_kafka, join, kafka_producer, write
from tests.pulsar_clients.brokers import ON_PULSAR, Given, unique
from tests.pulsar_clients.java import JavaClient, acknowledge, java, outcome, receive, receive_upto, send, texts

pytestmark = pytest.mark.skipif(ON_PULSAR, reason="no other broker has such transactions")
TIMEOUT_MS = 60_000


def named(client: JavaClient, transaction_id: int) -> Any:
    """Return the client's object for a transaction that others have opened; it has no public way to one."""
    implementation = java("org.apache.pulsar.client.impl.transaction.TransactionImpl")
    number = java("java.lang.Long")
    [constructor] = implementation.class_.getDeclaredConstructors()
    constructor.setAccessible(True)
    return constructor.newInstance([client.client, number(TIMEOUT_MS), number(transaction_id), number(0)])


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("ended_by", ["Kafka", "Pulsar"])
@pytest.mark.parametrize("opened_by", ["Kafka", "Pulsar"])
def test_all_of_it_has_one_outcome(
    given: Given, java: JavaClient, topic: str, opened_by: str, ended_by: str, commit: bool
) -> None:
    assert given.bootstrap is not None
    kafka, orders = unique("kafka"), unique("orders")
    source, target = java.consumer(orders, kind="Shared"), java.consumer(topic)
    asking, sender = java.producer(orders), java.producer(topic)
    send(asking, "order")
    [order] = receive(source, 1)
    producer = kafka_producer(given.bootstrap, topic)
    producer.begin_transaction()
    if opened_by == "Kafka":
        write(producer, kafka, b"by Kafka")
        transaction = named(java, join(given.bootstrap, None, topic))
    else:
        transaction = java.begin()
        join(given.bootstrap, int(transaction.getTxnID().getLeastSigBits()), topic)
        write(producer, kafka, b"by Kafka")
    send(sender, "by Java", transaction=transaction)
    assert acknowledge(source, [order], transaction) == ["done"]
    if ended_by == "Pulsar":
        assert outcome(transaction.commit() if commit else transaction.abort()) == "done"
    producer.commit_transaction() if commit else producer.abort_transaction()
    assert java.end(transaction, commit=commit) == "done"
    assert java.end(transaction, commit=not commit) == "InvalidTxnStatusException"
    send(sender, "last")
    assert texts(receive_upto(target, "last")) == (["by Java", "last"] if commit else ["last"])
    assert committed_of_kafka(given.bootstrap, kafka) == ([b"by Kafka"] if commit else [])
    send(asking, "last")
    assert texts(receive_upto(source, "last")) == (["last"] if commit else ["order", "last"])
