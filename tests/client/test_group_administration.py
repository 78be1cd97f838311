"""Groups as an administrator sees them, against a real broker."""

from exacta.client.group_administration import delete_group, list_groups
from exacta.client.group_offsets import fetch_offsets
from exacta.client.transactions import CommittedOffset, TopicPartition, commit_offset, end_transaction
from tests.client.test_transactions import taken
from tests.spark.clusters import new_topic


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
