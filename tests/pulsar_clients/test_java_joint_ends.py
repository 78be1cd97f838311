"""Both clients for Java, after the other side has ended a joint transaction: docs/explanation/one-log.md's tables."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

import exacta
from tests.pulsar.joint import committed_of_kafka, committed_of_pulsar, join
from tests.pulsar_clients.brokers import ON_PULSAR, unique
from tests.pulsar_clients.java import JavaClient, acknowledge, outcome, receive, send, send_async
from tests.pulsar_clients.java_kafka import TransactionalProducer

pytestmark = pytest.mark.skipif(ON_PULSAR, reason="no other broker has such transactions")

SUCCEEDS, ABORTS, CLOSES = "succeeds", "is told to abort, and goes on", "is refused; the producer must be closed"
TABLE = {
    # what Kafka's client does after a commit, and after an abort, by Pulsar's side
    "commits": (SUCCEEDS, ABORTS),
    "aborts": (CLOSES, SUCCEEDS),
    "writes a record": (CLOSES, ABORTS),
    "sends offsets": (CLOSES, ABORTS),
}
NOTHING_WRITTEN = {
    # the same, where it had written nothing
    "commits": (SUCCEEDS, SUCCEEDS),
    "aborts": (SUCCEEDS, SUCCEEDS),
    "writes a record": (ABORTS, ABORTS),
    "sends offsets": (ABORTS, ABORTS),
}
DOES: dict[str, Callable[[TransactionalProducer, str], str]] = {
    "commits": lambda producer, topic: producer.commit(),
    "aborts": lambda producer, topic: producer.abort(),
    "writes a record": lambda producer, topic: producer.write(topic, "late"),
    "sends offsets": lambda producer, topic: producer.send_offsets(topic),
}


@pytest.fixture(scope="module", params=[2, 1], ids=["version 2", "version 1"])
def broker(request: pytest.FixtureRequest) -> Iterator[exacta.Broker]:
    """A broker that offers this version of the transaction protocol."""
    with exacta.Broker(pulsar=True, transaction_version=request.param) as running:
        yield running


@pytest.fixture
def pulsar(broker: exacta.Broker) -> Iterator[JavaClient]:
    """Pulsar's side."""
    client = JavaClient(broker.pulsar_url)
    yield client
    client.close()


@pytest.mark.parametrize("commit", [True, False], ids=["after a commit", "after an abort"])
@pytest.mark.parametrize("does", TABLE)
@pytest.mark.parametrize("has_written", [True, False], ids=["written", "nothing written"])
def test_kafkas_client_is_answered_as_the_table_says(
    broker: exacta.Broker, pulsar: JavaClient, topic: str, does: str, has_written: bool, commit: bool
) -> None:
    bootstrap, expected = broker.bootstrap_servers, (TABLE if has_written else NOTHING_WRITTEN)[does][not commit]
    with closing(TransactionalProducer(bootstrap, topic)) as producer:
        transaction = pulsar.begin()
        assert producer.begin() == "done"
        join(bootstrap, int(transaction.getTxnID().getLeastSigBits()), topic)
        if has_written:
            assert producer.write(topic, "in time") == "done"
        assert pulsar.end(transaction, commit=commit) == "done"
        answered = DOES[does](producer, topic)
        if expected != SUCCEEDS:
            assert answered != "done"
            assert (producer.abort() == "done") is (expected == ABORTS)
        else:
            assert answered == "done"
        if expected == SUCCEEDS and not has_written:
            # It has not asked the broker, which tells it now.
            assert producer.begin() == "done"
            assert producer.write(topic, "late") != "done"
            assert producer.abort() == "done"
        assert goes_on(producer, topic) is (expected != CLOSES)
    if expected == CLOSES:
        with closing(TransactionalProducer(bootstrap, topic)) as another:
            assert goes_on(another, topic)
    in_time = [b"in time"] if has_written and commit else []
    assert committed_of_kafka(bootstrap, topic) == [*in_time, b"next"]
    assert committed_of_pulsar(broker.pulsar_url, topic) == [*in_time, b"next"]


def goes_on(producer: TransactionalProducer, topic: str) -> bool:
    """Return whether the producer's next transaction, of a record and an offset, is committed."""
    if producer.begin() != "done" or producer.write(topic, "next") != "done":
        return False
    return (producer.send_offsets(topic), producer.commit()) == ("done", "done")


@pytest.mark.parametrize("commit", [True, False], ids=["after a commit", "after an abort"])
@pytest.mark.parametrize("does", ["writes a record", "sends offsets"])
def test_who_has_written_nothing_may_name_the_next_one_at_once(
    broker: exacta.Broker, pulsar: JavaClient, topic: str, does: str, commit: bool
) -> None:
    bootstrap = broker.bootstrap_servers
    with closing(TransactionalProducer(bootstrap, topic)) as producer:
        assert producer.begin() == "done"
        for _ in range(3):
            transaction = pulsar.begin()
            join(bootstrap, int(transaction.getTxnID().getLeastSigBits()), topic)
            assert pulsar.end(transaction, commit=commit) == "done"
        transaction = pulsar.begin()
        join(bootstrap, int(transaction.getTxnID().getLeastSigBits()), topic)
        assert DOES[does](producer, topic) == "done"
        assert pulsar.end(transaction, commit=commit) == "done"
        assert (producer.commit() if commit else producer.abort()) == "done"
        assert goes_on(producer, topic)


@pytest.mark.parametrize("commit", [True, False], ids=["after a commit", "after an abort"])
def test_who_has_written_names_the_next_one_after_its_end(
    broker: exacta.Broker, pulsar: JavaClient, topic: str, commit: bool
) -> None:
    bootstrap = broker.bootstrap_servers
    with closing(TransactionalProducer(bootstrap, topic)) as producer:
        assert producer.begin() == "done"
        transaction, following = pulsar.begin(), pulsar.begin()
        join(bootstrap, int(transaction.getTxnID().getLeastSigBits()), topic)
        assert producer.write(topic, "in time") == "done"
        assert pulsar.end(transaction, commit=commit) == "done"
        with pytest.raises(exacta.NotJoined, match="it has ended, or" if commit else "abort it by its producer first"):
            join(bootstrap, int(following.getTxnID().getLeastSigBits()), topic)
        assert (producer.commit() if commit else producer.abort()) == "done"
        assert producer.begin() == "done"
        join(bootstrap, int(following.getTxnID().getLeastSigBits()), topic)
        assert producer.write(topic, "next") == "done"
        assert pulsar.end(following, commit=True) == "done"
        assert producer.commit() == "done"
    assert committed_of_kafka(bootstrap, topic) == [*([b"in time"] if commit else []), b"next"]


@pytest.mark.parametrize("commit", [True, False], ids=["after a commit", "after an abort"])
def test_pulsars_client_is_refused_what_comes_after_kafkas_end(
    broker: exacta.Broker, pulsar: JavaClient, topic: str, commit: bool
) -> None:
    bootstrap, orders = broker.bootstrap_servers, unique("orders")
    source, asking, sender = pulsar.consumer(orders, kind="Shared"), pulsar.producer(orders), pulsar.producer(topic)
    send(asking, "one", "two")
    one, two = receive(source, 2)
    with closing(TransactionalProducer(bootstrap, topic)) as producer:
        transaction = pulsar.begin()
        assert producer.begin() == "done"
        join(bootstrap, int(transaction.getTxnID().getLeastSigBits()), topic)
        assert producer.write(unique("kafka"), "in time") == "done"
        send(sender, "in time", transaction=transaction)
        assert acknowledge(source, [one], transaction) == ["done"]
        assert (producer.commit() if commit else producer.abort()) == "done"
    assert outcome(send_async(sender, "late", transaction)) == "NotAllowedException"
    assert outcome(send_async(pulsar.producer(unique("other")), "late", transaction)) == "InvalidTxnStatusException"
    assert acknowledge(source, [two], transaction) == ["PulsarClientException"]
    assert pulsar.end(transaction, commit=commit) == "done"
    assert pulsar.end(transaction, commit=not commit) == "InvalidTxnStatusException"
    send(sender, "next")
    assert committed_of_pulsar(broker.pulsar_url, topic) == [*([b"in time"] if commit else []), b"next"]
