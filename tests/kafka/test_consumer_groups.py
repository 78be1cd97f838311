"""Groups of the consumer protocol over the wire (KIP-848): what the front asks of a request, and makes of answers."""

import struct
from typing import Any

import pytest

from exacta.core.groups.consumer_words import read_assignment
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k11_join_group,
    k12_heartbeat,
    k13_leave_group,
    k14_sync_group,
    k15_describe_groups,
    k16_list_groups,
    k42_delete_groups,
    k68_consumer_group_heartbeat,
    k69_consumer_group_describe,
)
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.kafka.test_transactions_and_groups import Producer, commit
from tests.kafka.wire import Wire, front

TopicPartitions = k68_consumer_group_heartbeat.TopicPartitions


@pytest.fixture(autouse=True)
def topic_id(wire: Wire) -> bytes:
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    found: bytes = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12).topics[0].topic_id
    return found


def beat(wire: Wire, member_id: str = "m", epoch: int = 0, version: int = 1, **more: Any) -> Any:
    request = k68_consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch
    )
    for name, value in more.items():
        setattr(request, name, value)
    return wire.ask(request, version)


def join(wire: Wire, member_id: str = "m", version: int = 1, **more: Any) -> Any:
    everything = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    return beat(wire, member_id, 0, version, **(everything | more))


@pytest.mark.parametrize("version", range(2))
def test_a_member_joins_lives_and_leaves(wire: Wire, topic_id: bytes, version: int) -> None:
    joined = join(wire, version=version)
    assert (joined.error_code, joined.member_id, joined.heartbeat_interval_ms) == (0, "m", 5000)
    owned = [TopicPartitions(topic_id=topic_id, partitions=[0])]
    assert joined.assignment.topic_partitions == owned
    again = beat(wire, "m", joined.member_epoch, version, topic_partitions=owned)
    assert (again.error_code, again.member_epoch, again.assignment) == (0, joined.member_epoch, None)
    left = beat(wire, "m", -1, version)
    assert (left.error_code, left.member_epoch, left.heartbeat_interval_ms) == (0, -1, 0)
    late = beat(wire, "m", joined.member_epoch, version)
    assert late.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert late.error_message


def test_the_oldest_version_may_leave_its_id_to_the_broker(wire: Wire) -> None:
    assert len(join(wire, "", 0).member_id) == 36
    assert join(wire, "", 1).error_code == ErrorCode.INVALID_REQUEST, "KIP-1082"


@pytest.mark.parametrize(
    "fault",
    [
        {"group_id": ""},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"topic_partitions": [TopicPartitions()]},
        {"subscribed_topic_names": None},
        {"member_epoch": -2},
        {"member_epoch": -3},
        {"member_epoch": 1, "member_id": ""},
    ],
    ids=str,
)
def test_a_request_that_is_not_whole(wire: Wire, fault: dict[str, Any]) -> None:
    answer = join(wire, **fault)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message


def test_assignors_and_patterns(wire: Wire) -> None:
    assert join(wire, server_assignor="sticky").error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert join(wire, server_assignor="").error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    by_pattern: dict[str, Any] = {"subscribed_topic_names": None, "subscribed_topic_regex": "t.*"}
    assert join(wire, **by_pattern).assignment.topic_partitions[0].partitions == [0]
    by_pattern["subscribed_topic_regex"] = "("
    assert join(wire, **by_pattern).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_options() -> None:
    with front(
        group_consumer_max_size=1, group_consumer_assignors="range", group_consumer_heartbeat_interval_ms=7
    ) as broker:
        wire = broker.connect()
        assert join(wire).heartbeat_interval_ms == 7
        assert join(wire, "n").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert join(wire, server_assignor="uniform").error_code == ErrorCode.UNSUPPORTED_ASSIGNOR


@pytest.mark.parametrize("version", range(2))
def test_describing(wire: Wire, topic_id: bytes, version: int) -> None:
    epoch = join(wire, instance_id="i", rack_id="r").member_epoch
    m = k69_consumer_group_describe
    commit(wire, ("t", 0, 1))
    request = m.ConsumerGroupDescribeRequest(group_ids=["g", "none", ""])
    group, unknown, nameless = wire.ask(request, version).groups
    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Stable", "uniform")
    assert (group.group_epoch, group.assignment_epoch) == (epoch, epoch)
    [member] = group.members
    assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("m", "i", "r", epoch)
    assert (member.client_id, member.client_host, member.subscribed_topic_names) == ("tester", "/127.0.0.1", ["t"])
    assigned = m.Assignment(topic_partitions=[m.TopicPartitions(topic_id=topic_id, topic_name="t", partitions=[0])])
    assert member.assignment == member.target_assignment == assigned
    assert member.member_type == (1 if version >= 1 else -1)
    assert (unknown.error_code, unknown.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found.")
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID


def test_each_kind_of_group_is_described_by_its_own_request(wire: Wire) -> None:
    commit(wire, ("t", 0, 1))
    request = k69_consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=["g"])
    [shown] = wire.ask(request, 1).groups
    assert (shown.error_code, shown.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a consumer group.")
    join(wire)
    assert wire.ask(request, 1).groups[0].error_code == 0
    [shown] = wire.ask(k15_describe_groups.DescribeGroupsRequest(groups=["g"]), 6).groups
    assert (shown.error_code, shown.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a classic group.")


def test_listing_removing_and_deleting(wire: Wire) -> None:
    join(wire)

    def listed(**filters: list[str]) -> list[tuple[str, str, str]]:
        groups = wire.ask(k16_list_groups.ListGroupsRequest(**filters), 5).groups
        return [(group.group_state, group.group_type, group.protocol_type) for group in groups]

    assert (
        listed() == listed(types_filter=["Consumer"], states_filter=["stable"]) == [("Stable", "consumer", "consumer")]
    )
    assert listed(types_filter=["classic"]) == listed(states_filter=["Empty"]) == []
    delete = k42_delete_groups.DeleteGroupsRequest(groups_names=["g"])
    assert wire.ask(delete, 3).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    m = k13_leave_group
    left = wire.ask(m.LeaveGroupRequest(group_id="g", members=[m.MemberIdentity(member_id="m")]), 5)
    assert left.members[0].error_code == 0
    assert listed() == [("Empty", "consumer", "consumer")]
    assert wire.ask(delete, 3).results[0].error_code == 0
    assert listed() == []


def test_offsets_are_fenced_by_member_epochs(wire: Wire, topic_id: bytes) -> None:
    epoch = join(wire).member_epoch
    named = {"member_id": "m", "generation_id_or_member_epoch": epoch}
    assert commit(wire, ("t", 0, 5), version=9, **named) == [0]
    assert commit(wire, ("t", 0, 5), version=8, **named) == [ErrorCode.UNSUPPORTED_VERSION]
    stale = {"member_id": "m", "generation_id_or_member_epoch": epoch + 1}
    assert commit(wire, ("t", 0, 6), version=9, **stale) == [ErrorCode.STALE_MEMBER_EPOCH]
    stranger = {"member_id": "who", "generation_id_or_member_epoch": epoch}
    assert commit(wire, ("t", 0, 6), version=9, **stranger) == [ErrorCode.UNKNOWN_MEMBER_ID]

    def fetched(member_id: str | None, member_epoch: int) -> tuple[int, list[int]]:
        topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        asked = OffsetFetchRequestGroup(group_id="g", member_id=member_id, member_epoch=member_epoch, topics=topics)
        [group] = wire.ask(OffsetFetchRequest(groups=[asked]), 9).groups
        return group.error_code, [topic.partitions[0].committed_offset for topic in group.topics]

    assert fetched(None, -1) == fetched("m", epoch) == (0, [5])
    assert fetched("m", epoch + 1) == (ErrorCode.STALE_MEMBER_EPOCH, [])
    assert fetched("who", epoch) == (ErrorCode.UNKNOWN_MEMBER_ID, [])

    producer = Producer(wire)
    producer.add_group()
    named = {"member_id": "m", "generation_id": epoch}
    assert producer.commit_offset(7, 3, **named) == 0
    late = {"member_id": "m", "generation_id": epoch + 1}
    assert producer.commit_offset(7, 3, **late) == ErrorCode.ILLEGAL_GENERATION, "what older versions know"
    assert producer.commit_offset(7, 6, topic_id=topic_id, **late) == ErrorCode.STALE_MEMBER_EPOCH


def test_a_group_with_members_of_both_protocols(wire: Wire, topic_id: bytes) -> None:
    words = struct.pack(">hih1sii", 1, 1, 1, b"t", -1, 0)
    protocols = [k11_join_group.JoinGroupRequestProtocol(name="range", metadata=words)]
    asked = k11_join_group.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=protocols,
        group_instance_id="i",
    )
    classic = wire.ask(asked, 9)
    named = {"group_id": "g", "member_id": classic.member_id, "group_instance_id": "i"}
    assert wire.ask(k14_sync_group.SyncGroupRequest(generation_id=1, **named), 4).error_code == 0
    assert join(wire).error_code == 0
    shown = wire.ask(k69_consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups[0]
    assert {member.member_id: member.member_type for member in shown.members} == {classic.member_id: 0, "m": 1}
    assert (
        wire.ask(k12_heartbeat.HeartbeatRequest(generation_id=1, **named), 4).error_code
        == ErrorCode.REBALANCE_IN_PROGRESS
    )
    asked.member_id = classic.member_id
    again = wire.ask(asked, 9)
    assert (again.error_code, again.leader, again.members) == (0, "", [])
    synced = wire.ask(
        k14_sync_group.SyncGroupRequest(
            generation_id=again.generation_id, protocol_type="consumer", protocol_name="range", **named
        ),
        5,
    )
    assert (synced.error_code, read_assignment(synced.assignment)) == (0, (("t", 0),))
    assert beat(wire, "m", -1).error_code == 0
    assert wire.ask(k15_describe_groups.DescribeGroupsRequest(groups=["g"]), 5).groups[0].protocol_type == "consumer"
