"""Produce and Fetch by topic ids (KIP-516): a topic made anew under a name is another topic."""

from collections.abc import Mapping
from typing import Any

import pytest

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from exacta.protocol.kafka.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from exacta.protocol.kafka.schema import NO_UUID
from tests.kafka.wire import Front, Wire, batch, values_in

PRODUCE_VERSION = 13
FETCH_VERSIONS = range(13, 19)
UNKNOWN = b"\1" * 16


def create(wire: Wire, name: str = "t", partitions: int = 1, configs: Mapping[str, str] | None = None) -> bytes:
    own = [CreatableTopicConfig(name=each, value=value) for each, value in (configs or {}).items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=own)
    topic_id: bytes = wire.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].topic_id
    return topic_id


def delete(wire: Wire, name: str = "t") -> None:
    wire.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)]), 6)


def produce(wire: Wire, topic_id: bytes, value: bytes = b"a", partition: int = 0) -> Any:
    data = PartitionProduceData(index=partition, records=batch(value))
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(topic_id=topic_id, partition_data=[data])])
    [topic] = wire.ask(request, PRODUCE_VERSION).responses
    assert topic.topic_id == topic_id
    return topic.partition_responses[0]


def request(*topic_ids: bytes, max_wait_ms: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        min_bytes=1,
        max_wait_ms=max_wait_ms,
        topics=[FetchTopic(topic_id=topic_id, partitions=[partition]) for topic_id in topic_ids],
    )


def answers(response: Any) -> dict[bytes, Any]:
    return {topic.topic_id: topic.partitions[0] for topic in response.responses}


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_what_is_written_by_id_is_read_by_id(wire: Wire, version: int) -> None:
    one, two = create(wire, "one"), create(wire, "two")
    assert (produce(wire, one, b"1").base_offset, produce(wire, two, b"2").base_offset) == (0, 0)
    found = answers(wire.ask(request(one, two), version))
    assert {topic_id: values_in(data.records) for topic_id, data in found.items()} == {one: [b"1"], two: [b"2"]}


@pytest.mark.parametrize("topic_id", [UNKNOWN, NO_UUID])
def test_an_id_that_nobody_has(wire: Wire, topic_id: bytes) -> None:
    known = create(wire)
    refused = produce(wire, topic_id)
    assert (refused.error_code, refused.base_offset) == (ErrorCode.UNKNOWN_TOPIC_ID, -1)
    found = answers(wire.ask(request(topic_id, known, max_wait_ms=60_000), 16))
    assert (found[topic_id].error_code, found[topic_id].high_watermark) == (ErrorCode.UNKNOWN_TOPIC_ID, -1)
    assert found[known].error_code == ErrorCode.NONE


def test_a_partition_that_the_topic_does_not_have(wire: Wire) -> None:
    assert produce(wire, create(wire), partition=7).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_old_id_neither_writes_to_nor_reads_the_topic_made_anew(wire: Wire) -> None:
    old = create(wire)
    produce(wire, old, b"old")
    delete(wire)
    assert produce(wire, old).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    new = create(wire)
    assert produce(wire, old).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert answers(wire.ask(request(old), 17))[old].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert produce(wire, new, b"new").base_offset == 0
    assert values_in(answers(wire.ask(request(new), 17))[new].records) == [b"new"]


def test_a_waiting_reader_of_the_old_id_does_not_get_the_new_topics_records(broker: Front, wire: Wire) -> None:
    """Deletion and creation reach the disk in one group, so that the reader is looked at only after both."""
    old = create(wire)
    waiting = request(old, max_wait_ms=60_000)
    wire.send(waiting, 17)
    other = broker.connect()
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    for message, version in (
        (DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6),
        (CreateTopicsRequest(topics=[topic]), 7),
    ):
        other.send(message, version)
    _, response = wire.receive(waiting, 17)
    assert answers(response)[old].error_code in (
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )


def test_ids_survive_a_restart_by_events_and_by_snapshot(broker: Front, wire: Wire) -> None:
    from exacta.core.snapshot import restore, snapshot

    topic_id = create(wire)
    state = broker.on_loop(lambda: broker.engine._state)
    assert restore(snapshot(state), state.limits).volatile.topic_names == {topic_id: "t"}


def test_a_follower_is_told_who_leads(wire: Wire) -> None:
    topic_id = create(wire)
    asked = request(topic_id)
    asked.replica_state = ReplicaState(replica_id=5, replica_epoch=1)
    data = answers(wire.ask(asked, 17))[topic_id]
    assert (data.error_code, data.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)
