"""Groups from outside: offsets committed, groups listed and deleted, against a real broker."""

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Wanted

from exacta.client.errors import KafkaError
from exacta.client.groups import commit_offsets, delete_group, list_groups
from exacta.client.routing import Client
from exacta.client.transactions import CommittedOffset, TopicPartition, commit_offset, end_transaction, fetch_offsets
from tests.client.test_transactions import taken
from tests.spark.clusters import new_topic


@pytest.fixture
def client(bootstrap):
    with Client(bootstrap) as client:
        yield client


def test_groups_are_listed_and_deleted(client):
    topic = new_topic(client.bootstrap, 1)
    producer = taken(client, f"{topic}-a")
    groups = [f"{topic}-{number}" for number in range(3)]
    for group in groups:
        commit_offset(client, producer, group, TopicPartition(topic, 0), CommittedOffset(1, ""))
    end_transaction(client, producer, commit=True)
    assert list_groups(client, f"{topic}-") == groups
    assert delete_group(client, groups[1]) is True
    assert delete_group(client, groups[1]) is False
    assert list_groups(client, f"{topic}-") == [groups[0], groups[2]]
    assert fetch_offsets(client, groups[1]) == {}


def consumer_of(bootstrap, group):
    return Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})


def test_other_clients_see_what_was_committed(bootstrap):
    topic, other = new_topic(bootstrap, 2), new_topic(bootstrap, 1)
    with Client(bootstrap) as client:
        offsets = {TopicPartition(topic, 0): 7, TopicPartition(topic, 1): 0, TopicPartition(other, 0): 1 << 40}
        commit_offsets(client, topic, offsets)
        commit_offsets(client, topic, {TopicPartition(topic, 0): 9, TopicPartition(f"{topic}-gone", 0): 5})
    consumer = consumer_of(bootstrap, topic)
    try:
        wanted = [Wanted(topic, 0), Wanted(topic, 1), Wanted(other, 0)]
        assert [found.offset for found in consumer.committed(wanted, 30)] == [9, 0, 1 << 40]
    finally:
        consumer.close()


def test_a_group_with_members_takes_no_offsets_from_outside(bootstrap):
    topic = new_topic(bootstrap, 1)
    member = consumer_of(bootstrap, topic)
    try:
        member.subscribe([topic])
        while not member.assignment():
            member.poll(0.1)
        with (
            Client(bootstrap) as client,
            pytest.raises(KafkaError, match=f"committing offsets to group '{topic}': UNKNOWN_M"),
        ):
            commit_offsets(client, topic, {TopicPartition(topic, 0): 7})
    finally:
        member.close()
