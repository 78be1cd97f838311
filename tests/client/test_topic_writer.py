"""Records written one by one: where they go, and whose transactions they are in."""

import time

import pytest

import exacta
from exacta.client.errors import KafkaError
from exacta.client.partitioner import partition_of_key
from exacta.client.routing import Client
from exacta.client.topic_writer import NewRecord, TopicWriter
from exacta.client.transactions import init_producer_id
from tests.client.described import state_of
from tests.spark.clusters import new_topic, read_committed


def values(client, topic):
    return sorted(value for _, _, value in read_committed(client.bootstrap, topic))


def test_a_key_decides_and_keyless_records_take_turns(client):
    topic = new_topic(client.bootstrap, 3)
    writer = TopicWriter(client, topic)
    for _ in range(3):
        writer.add(NewRecord(b"k", b"by key"))
        writer.add(NewRecord(None, b"keyless"))
        writer.flush()
    writer.close()
    found = [(partition, value) for partition, _, value in read_committed(client.bootstrap, topic)]
    assert {partition for partition, value in found if value == b"by key"} == {partition_of_key(b"k", 3)}
    assert {partition for partition, value in found if value == b"keyless"} == {0, 1, 2}


def test_each_transaction_is_committed_for_itself(client, topic):
    writer = TopicWriter(client, topic, transactional_id=topic)
    for number in range(3):
        writer.add(NewRecord(None, b"%d" % number))
        writer.commit()
        assert values(client, topic) == [b"%d" % each for each in range(number + 1)]
    writer.add(NewRecord(None, b"never"))
    writer.flush()
    writer.give_up(send=True)
    assert (writer.written, writer.transactions) == (4, 3)
    assert state_of(client, topic) in ("PrepareAbort", "CompleteAbort")
    assert values(client, topic) == [b"0", b"1", b"2"]


def test_nothing_is_committed_where_nothing_was_written(client, topic):
    writer = TopicWriter(client, topic, transactional_id=topic)
    writer.commit()
    assert (writer.transactions, state_of(client, topic)) == (0, "Empty")


def test_whoever_takes_the_id_over_ends_the_writing(client, topic):
    writer = TopicWriter(client, topic, transactional_id=topic)
    writer.add(NewRecord(None, b"first"))
    writer.commit()
    init_producer_id(client, topic, transaction_timeout_ms=60_000)
    with pytest.raises(KafkaError) as refused:
        writer.add(NewRecord(None, b"second"))
    assert refused.value.fenced
    writer.give_up(send=False)
    assert values(client, topic) == [b"first"]


@pytest.mark.parametrize("transactional_id", ["", "t"])
def test_what_cannot_be_sent_is_given_up_soon(monkeypatch, transactional_id):
    monkeypatch.setattr("exacta.client.topic_writer._CLEAN_UP_MS", 100)
    broker = exacta.Broker()
    with broker, Client(broker.bootstrap_servers) as client:
        writer = TopicWriter(client, "topic", transactional_id=transactional_id)
        writer.add(NewRecord(None, b"1"))
        writer.flush()
        writer.add(NewRecord(None, b"2"))
        broker.stop()
        began_s = time.monotonic()
        assert not writer.give_up(send=True)
        assert time.monotonic() - began_s < 60, "half of what a producer takes to give up by itself"
