"""ConsumerGroupDescribe: members, epochs and assignments of the consumer protocol, for people and tools (KIP-848)."""

from collections.abc import Collection

from exacta.core.groups.consumer.step import preferred_assignor
from exacta.core.state.consumer_membership import ConsumerGroup, ConsumerMember, TopicPartition
from exacta.core.state.state import State
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.group_states import CONSUMER_STATES
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.kafka.request_size import first_time
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k69_consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

KEY = ApiKey.CONSUMER_GROUP_DESCRIBE
MIN_VERSION = 0
MAX_VERSION = 1
MEMBER_OF_CONSUMER_PROTOCOL = 1  # KIP-1099; 0 is a member of the classic one


def handle(broker: BrokerContext, request: ConsumerGroupDescribeRequest, context: RequestContext, reply: Reply) -> None:
    """Answer all groups from one state."""

    def view(state: State, now_ms: int) -> ConsumerGroupDescribeResponse:
        return ConsumerGroupDescribeResponse(
            groups=[_describe(state, group_id) for group_id in filter(first_time(), request.group_ids)]
        )

    broker.read(context, view, reply)


def _describe(state: State, group_id: str) -> DescribedGroup:
    group = state.volatile.consumer_groups.get(group_id)
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    if group is None:
        known = state.has_group(group_id)
        message = f"Group {group_id} is not a consumer group." if known else f"Group {group_id} not found."
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message)
    return DescribedGroup(
        group_id=group_id,
        group_state=CONSUMER_STATES[group.phase],
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=preferred_assignor(group, state.limits.group_consumer_assignors),
        members=[_describe_member(state, group, member) for member in group.members.values()],
    )


def _describe_member(state: State, group: ConsumerGroup, member: ConsumerMember) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.pattern,
        assignment=_assignment(state, member.assigned.keys() | member.revoking.keys()),
        target_assignment=_assignment(state, group.target.get(member.member_id, ())),
        member_type=MEMBER_OF_CONSUMER_PROTOCOL,
    )


def _assignment(state: State, partitions: Collection[TopicPartition]) -> Assignment:
    """Name the partitions by topic; those of a topic that is gone are nobody's any more."""
    by_topic: dict[str, TopicPartitions] = {}
    for topic_id, index in sorted(partitions):
        name = state.volatile.topic_names.get(topic_id)
        if name is not None:
            of = by_topic.setdefault(name, TopicPartitions(topic_id=topic_id, topic_name=name, partitions=[]))
            of.partitions.append(index)
    return Assignment(topic_partitions=list(by_topic.values()))
