"""Readers by Pulsar's client for Java: where they begin, what they see of transactions, and seeks by id and time."""

import time
from typing import Any

import pytest

from tests.pulsar_clients.brokers import Given
from tests.pulsar_clients.differences import told
from tests.pulsar_clients.java import JavaClient, api, outcome, receive, seconds, send, text, texts


def rest(reader: Any) -> list[str]:
    """Read until the reader itself says that there is no more."""
    found: list[str] = []
    while reader.hasMessageAvailable():
        message = reader.readNext(*seconds(20))
        assert message is not None, f"it says that there is more after {found}"
        found.append(text(message))
    return found


@pytest.mark.parametrize("batch", [1, 5], ids=["single", "batches"])
@pytest.mark.parametrize("inclusive", [True, False], ids=["inclusive", "exclusive"])
def test_a_reader_begins_at_a_message(java: JavaClient, topic: str, batch: int, inclusive: bool) -> None:
    producer = java.batching(topic, batch) if batch > 1 else java.producer(topic)
    values = [str(number) for number in range(10)]
    ids = send(producer, *values)
    more = {"startMessageIdInclusive": ()} if inclusive else {}
    for index in range(10):
        reader = java.reader(topic, ids[index], **more)
        assert rest(reader) == values[index if inclusive else index + 1 :]
        reader.close()


def test_a_reader_begins_at_the_first_or_after_the_last(java: JavaClient, topic: str) -> None:
    producer = java.producer(topic)
    send(producer, "one", "two")
    earliest, latest = java.reader(topic), java.reader(topic, api("MessageId").latest)
    assert not latest.hasMessageAvailable()
    assert rest(earliest) == ["one", "two"]
    inclusive = java.reader(topic, api("MessageId").latest, startMessageIdInclusive=())
    assert rest(inclusive) == ["two"]
    send(producer, "three")
    assert [rest(each) for each in (earliest, latest, inclusive)] == [["three"]] * 3


def test_a_reader_of_an_empty_topic(java: JavaClient, topic: str) -> None:
    java.producer(topic).close()
    for start in (api("MessageId").earliest, api("MessageId").latest):
        for more in ({}, {"startMessageIdInclusive": ()}):
            assert rest(java.reader(topic, start, **more)) == []


@pytest.mark.parametrize("batch", [1, 3], ids=["single", "batches"])
def test_what_was_aborted_at_the_end_is_not_available(java: JavaClient, topic: str, batch: int) -> None:
    producer = java.batching(topic, batch) if batch > 1 else java.producer(topic)
    reader = java.reader(topic)
    send(producer, "a", "b", "c")
    for _ in range(3):
        transaction = java.begin()
        send(producer, "x", "y", "z", transaction=transaction)
        assert outcome(transaction.abort()) == "done"
    assert rest(reader) == ["a", "b", "c"]
    assert rest(java.reader(topic)) == ["a", "b", "c"]


def test_after_a_commit_a_marker_is_no_message(java: JavaClient, topic: str) -> None:
    producer, reader = java.producer(topic), java.reader(topic)
    for number in range(3):
        transaction = java.begin()
        send(producer, str(number), transaction=transaction)
        assert outcome(transaction.commit()) == "done"
        assert rest(reader) == [str(number)]
    assert rest(java.reader(topic)) == ["0", "1", "2"]
    latest = java.reader(topic, api("MessageId").latest, startMessageIdInclusive=())
    assert rest(latest) == told("the latest message, inclusive, where a marker follows")


def test_the_last_message_is_the_last_that_can_be_read(java: JavaClient, topic: str) -> None:
    producer, consumer = java.producer(topic), java.consumer(topic)

    def last() -> str:
        [found] = consumer.getLastMessageIds()
        return f"{found.getLedgerId()}:{found.getEntryId()}"

    [sent] = send(producer, "before")
    before = f"{sent.getLedgerId()}:{sent.getEntryId()}"
    assert last() == before
    transaction = java.begin()
    send(producer, "in it", transaction=transaction)
    send(producer, "after")
    assert last() == before
    reader = java.reader(topic)
    assert rest(reader) == ["before"]
    assert outcome(transaction.commit()) == "done"
    assert rest(reader) == ["in it", "after"]


UNCOMMITTED = ("isolation.level", "read_uncommitted")


@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "Failover", "Key_Shared"])
def test_a_non_durable_subscription_reads_uncommitted_messages(java: JavaClient, topic: str, kind: str) -> None:
    """The builder of a reader has no properties, but a consumer's builder has."""
    producer = java.producer(topic)
    mode = api("SubscriptionMode").NonDurable
    consumer = java.consumer(topic, "watching", kind, subscriptionMode=mode, property=UNCOMMITTED)
    transaction = java.begin()
    send(producer, "a", "b", transaction=transaction)
    expected = told("messages of an open transaction, where uncommitted ones are asked for")
    found = receive(consumer, len(expected))
    assert sorted(texts(found)) == expected
    assert [outcome(consumer.acknowledgeAsync(each)) for each in found] == ["done"] * len(found)
    assert outcome(transaction.abort()) == "done"
    send(producer, "c")
    assert texts(receive(consumer, 1)) == ["c"]


def test_a_durable_subscription_reads_no_uncommitted_messages(java: JavaClient, topic: str) -> None:
    asked = outcome(lambda: java.consumer(topic, property=UNCOMMITTED))
    assert asked == told("a durable subscription that asks for uncommitted messages")


def test_consumers_of_one_subscription_read_alike(java: JavaClient, topic: str) -> None:
    mode = api("SubscriptionMode").NonDurable
    java.consumer(topic, kind="Shared", subscriptionMode=mode, property=UNCOMMITTED)
    asked = outcome(lambda: java.consumer(topic, kind="Shared", subscriptionMode=mode))
    assert asked == told("a second consumer that asks for another isolation level")


def test_a_seek_by_id(java: JavaClient, topic: str) -> None:
    producer = java.producer(topic)
    values = [str(number) for number in range(10)]
    ids = send(producer, *values)
    reader = java.reader(topic)
    for index in (5, 0, 9):
        reader.seek(ids[index])
        assert rest(reader) == values[index + 1 :]
    reader.seek(api("MessageId").earliest)
    assert rest(reader) == values
    reader.seek(api("MessageId").latest)
    assert rest(reader) == []
    inclusive = java.reader(topic, startMessageIdInclusive=())
    inclusive.seek(ids[5])
    assert rest(inclusive) == values[5:]


def test_a_seek_by_time(java: JavaClient, topic: str) -> None:
    producer = java.producer(topic)
    send(producer, "before")
    time.sleep(0.02)  # so that the clock of the messages goes on
    moment = time.time_ns() // 1_000_000
    time.sleep(0.02)
    send(producer, "after")
    reader = java.reader(topic)
    assert rest(reader) == ["before", "after"]
    reader.seek(moment)
    assert rest(reader) == ["after"]
    reader.seek(0)
    assert rest(reader) == ["before", "after"]
    reader.seek(moment + 60_000)
    assert rest(reader) == []


@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "Failover", "Key_Shared"])
def test_a_subscription_seeks(java: JavaClient, topic: str, kind: str) -> None:
    producer, consumer = java.producer(topic), java.consumer(topic, kind=kind)
    values = [str(number) for number in range(10)]
    ids = send(producer, *values)
    found = receive(consumer, 10)
    assert [outcome(consumer.acknowledgeAsync(each)) for each in found] == ["done"] * 10
    consumer.seek(ids[4])
    assert sorted(texts(receive(consumer, 5))) == values[5:], "the client itself drops the message"
    consumer.seek(api("MessageId").earliest)
    assert sorted(texts(receive(consumer, 10))) == values
    consumer.seek(api("MessageId").latest)
    send(producer, "last")
    assert texts(receive(consumer, 1)) == ["last"]


def test_a_seek_does_not_bring_back_what_is_pending(java: JavaClient, topic: str) -> None:
    producer, consumer = java.producer(topic), java.consumer(topic, kind="Shared")
    send(producer, *"abcd")
    found = sorted(receive(consumer, 4), key=text)
    transaction = java.begin()
    assert outcome(consumer.acknowledgeAsync(found[1].getMessageId(), transaction)) == "done"
    consumer.seek(api("MessageId").earliest)
    assert sorted(texts(receive(consumer, 3))) == ["a", "c", "d"]
    assert outcome(transaction.abort()) == "done"
    assert texts(receive(consumer, 1)) == ["b"]


def test_a_reader_of_a_partitioned_topic(java: JavaClient, topic: str, given: Given) -> None:
    given.create_partitioned(topic, 3)
    producer = java.producer(topic)
    values = [str(number) for number in range(12)]
    for value in values:
        send(producer, value)
    assert sorted(rest(java.reader(topic)), key=int) == values


def test_a_table_view_has_the_last_value_of_each_key(java: JavaClient, topic: str) -> None:
    producer = java.producer(topic)
    send(producer, "1", key="a")
    send(producer, "2", key="b")
    transaction = java.begin()
    send(producer, "3", key="a", transaction=transaction)
    assert outcome(transaction.commit()) == "done"
    transaction = java.begin()
    send(producer, "4", key="b", transaction=transaction)
    assert outcome(transaction.abort()) == "done"
    view = java.client.newTableView(api("Schema").BYTES).topic(f"persistent://public/default/{topic}").create()
    assert {str(key): bytes(view.get(key)) for key in view.keySet()} == {"a": b"3", "b": b"2"}
    view.close()


def test_what_was_never_compacted_is_read_as_it_is(java: JavaClient, topic: str) -> None:
    producer = java.producer(topic)
    for key, value in (("a", "1"), ("b", "2"), ("a", "3")):
        send(producer, value, key=key)
    assert rest(java.reader(topic, readCompacted=True)) == ["1", "2", "3"]
    for kind in ("Exclusive", "Failover"):
        consumer = java.consumer(topic, kind, kind, readCompacted=True)
        assert texts(receive(consumer, 3)) == ["1", "2", "3"]
    refused = outcome(lambda: java.consumer(topic, "Shared", "Shared", readCompacted=True))
    assert refused == "InvalidConfigurationException"
