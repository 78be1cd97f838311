"""ConsumerGroupDescribe tells the members of groups of the consumer protocol, with epochs and assignments (KIP-848)."""

from collections.abc import Iterable
from functools import partial

from exacta.core.groups import description
from exacta.core.groups.description import AssignedTopic, DescribedConsumer, DescribedConsumerGroup
from exacta.core.queries.groups import described_groups
from exacta.front.broker import Broker
from exacta.kafka.access import allows
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.authorized_operations import on_group
from exacta.kafka.context import RequestContext
from exacta.kafka.group_states import state_name
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each, Inside
from exacta.kafka.parts import Repeats, divided_by
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k69_consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

MEMBER_OF_CLASSIC_PROTOCOL, MEMBER_OF_CONSUMER_PROTOCOL = 0, 1  # KIP-1099

NEEDS = (
    Each(Operation.DESCRIBE, ResourceKind.GROUP, "group_ids", "groups", name=""),
    Inside(Operation.DESCRIBE, ResourceKind.TOPIC),
)


def handle(broker: Broker, request: ConsumerGroupDescribeRequest, context: RequestContext, reply: Reply) -> None:
    """Answer all groups of a request, or of a part of it, from one state."""

    names = [*dict.fromkeys(request.group_ids)]

    found = broker.engine.view(partial(described_groups, group_ids=names))
    groups = [_told(broker, context, *each) for each in zip(names, found, strict=True)]
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = on_group(broker, context, group.group_id)
    broker.when_durable(context, lambda: reply(ConsumerGroupDescribeResponse(groups=groups)))


def _told(
    broker: Broker,
    context: RequestContext,
    group_id: str,
    group: description.DescribedGroup | DescribedConsumerGroup | None,
) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    if not isinstance(group, DescribedConsumerGroup):
        message = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message)
    if not _may_see(broker, context, group):
        return DescribedGroup(
            group_id=group_id,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="The client may not describe a topic of which a member of the group has partitions.",
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=state_name(group.phase),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[_member(member) for member in group.members],
    )


def _may_see(broker: Broker, context: RequestContext, group: DescribedConsumerGroup) -> bool:
    """Return whether the client may describe every topic that an assignment names, as Apache Kafka asks."""
    if broker.authorizer.allows_all:
        return True
    topics = {each.topic for member in group.members for each in (*member.assignment, *member.target)}
    return all(allows(broker, context, Operation.DESCRIBE, ResourceKind.TOPIC, topic) for topic in topics)


def _member(member: DescribedConsumer) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.pattern,
        assignment=_assignment(member.assignment),
        target_assignment=_assignment(member.target),
        member_type=MEMBER_OF_CLASSIC_PROTOCOL if member.speaks_classic else MEMBER_OF_CONSUMER_PROTOCOL,
    )


def _assignment(topics: Iterable[AssignedTopic]) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=each.topic_id, topic_name=each.topic, partitions=list(each.partitions))
            for each in topics
        ]
    )


HANDLER = Handler(
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    versions=(0, 1),
    needs=NEEDS,
    at_follower=NOT_COORDINATOR,
    handle=handle,
    parts=(divided_by(NEEDS[0], most=200, repeats=Repeats.LEFT_OUT),),
)
