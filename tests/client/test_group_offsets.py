"""Offsets of a group, committed from outside of it."""

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Wanted

from exacta.client.errors import KafkaError
from exacta.client.group_offsets import commit_offsets
from exacta.client.routing import Client
from exacta.client.transactions import TopicPartition
from tests.spark.clusters import new_topic


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
