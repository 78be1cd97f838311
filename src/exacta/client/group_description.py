"""Look at a group and its members, of the classic protocol or of KIP-848's, as an administrator does.

This module owns the shapes of DescribeGroups and ConsumerGroupDescribe, and what an assignment of the classic protocol
looks like. A cluster knows a group by one of the two protocols, and does not say which when it is asked by the other.
"""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from exacta.client.errors import KafkaError
from exacta.client.routing import GROUP, Client, Coordinator
from exacta.client.transactions import TopicPartition
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k15_describe_groups import DescribeGroupsRequest
from exacta.protocol.kafka.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest

_CONSUMER = "consumer"
"""The type of the protocol that Kafka's consumers speak, also in the classic groups."""

_DEAD = "Dead"
"""The state of a classic group that is not there, in versions that have no error for it."""

_NOT_BY_THIS_PROTOCOL = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})


class Member(NamedTuple):
    """A member of a group, and the partitions that it has now."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


class GroupDescription(NamedTuple):
    """A group. `protocol` is classic or consumer (KIP-848); a group that holds offsets only is a classic one."""

    group: str
    protocol: str
    state: str
    assignor: str
    members: tuple[Member, ...]


def describe_group(client: Client, group: str) -> GroupDescription | None:
    """Return what the coordinator says of a group, None where there is none; raises `KafkaError`."""
    return _of_consumers(client, group) or _classic(client, group)


def _of_consumers(client: Client, group: str) -> GroupDescription | None:
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    if not client.offers(Coordinator(GROUP, group), request):
        return None
    found = _ask(client, group, request)
    if found is None:
        return None
    members = [
        Member(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            tuple(
                TopicPartition(topic.topic_name, index)
                for topic in each.assignment.topic_partitions
                for index in sorted(topic.partitions)
            ),
        )
        for each in found.members
    ]
    return GroupDescription(group, "consumer", found.group_state, found.assignor_name, tuple(sorted(members)))


def _classic(client: Client, group: str) -> GroupDescription | None:
    found = _ask(client, group, DescribeGroupsRequest(groups=[group]))
    if found is None or found.group_state == _DEAD:
        return None
    is_of_consumers = found.protocol_type == _CONSUMER
    members = [
        Member(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            tuple(_assigned(each.member_assignment)) if is_of_consumers else (),
        )
        for each in found.members
    ]
    return GroupDescription(group, "classic", found.group_state, found.protocol_data, tuple(sorted(members)))


def _ask(client: Client, group: str, request: DescribeGroupsRequest | ConsumerGroupDescribeRequest) -> Any | None:
    """Return the entry of the group, None where it is not known by this protocol."""
    what = f"describing group '{group}'"
    reply = client.call(
        Coordinator(GROUP, group),
        request,
        what=what,
        codes=lambda reply: [each.error_code for each in reply.groups if each.error_code not in _NOT_BY_THIS_PROTOCOL],
    )
    (found,) = reply.groups
    return None if found.error_code in _NOT_BY_THIS_PROTOCOL else found


def _assigned(data: bytes | memoryview) -> Iterator[TopicPartition]:
    """Yield the partitions of an assignment that a leader has encoded (ConsumerProtocolAssignment)."""
    raw = bytes(data)
    if not raw:
        return
    try:
        (count,), at = struct.unpack_from(">i", raw, 2), 6  # behind the version
        for _ in range(count):
            (size,) = struct.unpack_from(">h", raw, at)
            topic = raw[at + 2 : at + 2 + size].decode()
            (partitions,) = struct.unpack_from(">i", raw, at + 2 + size)
            at += 6 + size
            for index in struct.unpack_from(f">{max(0, partitions)}i", raw, at):
                yield TopicPartition(topic, index)
            at += 4 * partitions
    except (struct.error, UnicodeDecodeError) as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "an assignment of the group cannot be read") from error
