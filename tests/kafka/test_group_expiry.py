"""A group that nobody uses is gone for Kafka's clients, when its time is over."""

from exacta.protocol.kafka.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from exacta.protocol.kafka.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from exacta.protocol.kafka.messages.k16_list_groups import ListGroupsRequest
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from tests.kafka.by_hand import Broker

MINUTE_MS = 60_000


def test_its_offsets_are_forgotten_after_offsets_retention_minutes() -> None:
    broker = Broker(offsets_retention_minutes=5, offsets_retention_check_interval_ms=MINUTE_MS)
    client = broker.connect()
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    broker.ask(client, CreateTopicsRequest(topics=[topic], timeout_ms=1000), 4)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    commit = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])])
    broker.ask(client, commit, 7)

    def offset_and_groups() -> tuple[int, list[str]]:
        fetch = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])])
        [found] = broker.ask(client, fetch, 5).topics
        listed = broker.ask(client, ListGroupsRequest(), 2)
        return found.partitions[0].committed_offset, [group.group_id for group in listed.groups]

    broker.pass_time(4 * MINUTE_MS)
    assert offset_and_groups() == (7, ["g"])
    broker.pass_time(2 * MINUTE_MS)
    assert offset_and_groups() == (-1, [])
    broker.end()
