"""DescribeGroups tells the members of groups and their assignments, for people and tools."""

from functools import partial

from exacta.core.groups import description
from exacta.core.groups.description import DescribedConsumerGroup
from exacta.core.queries.groups import described_groups
from exacta.front.broker import Broker
from exacta.kafka.at_follower import NOT_COORDINATOR
from exacta.kafka.authorized_operations import on_group
from exacta.kafka.context import RequestContext
from exacta.kafka.group_states import state_name
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.needs import Each
from exacta.kafka.parts import Repeats, divided_by
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k15_describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

NOT_FOUND_SINCE = 6  # KIP-1043
UNKNOWN_GROUP_STATE = "Dead"
"""The state that Kafka gives a group that is not there, up to version 5, instead of an error."""

NEEDS = (Each(Operation.DESCRIBE, ResourceKind.GROUP, "groups", "groups", name=""),)


def handle(broker: Broker, request: DescribeGroupsRequest, context: RequestContext, reply: Reply) -> None:
    """Answer all groups of a request, or of a part of it, from one state."""

    names = [*dict.fromkeys(request.groups)]

    found = broker.engine.view(partial(described_groups, group_ids=names))
    groups = [_told(*each, context.version) for each in zip(names, found, strict=True)]
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = on_group(broker, context, group.group_id)
    broker.when_durable(context, lambda: reply(DescribeGroupsResponse(groups=groups)))


def _told(
    group_id: str, group: description.DescribedGroup | DescribedConsumerGroup | None, version: int
) -> DescribedGroup:
    if group is None or isinstance(group, DescribedConsumerGroup):
        unknown = DescribedGroup(group_id=group_id, group_state=UNKNOWN_GROUP_STATE)
        if version >= NOT_FOUND_SINCE:
            unknown.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            fault = "not found." if group is None else "is not a classic group."
            unknown.error_message = f"Group {group_id} {fault}"
        return unknown
    return DescribedGroup(
        group_id=group_id,
        group_state=state_name(group.phase),
        protocol_type=group.protocol_type,
        protocol_data=group.protocol,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ],
    )


HANDLER = Handler(
    ApiKey.DESCRIBE_GROUPS,
    versions=(0, 6),
    needs=NEEDS,
    at_follower=NOT_COORDINATOR,
    handle=handle,
    parts=(divided_by(NEEDS[0], most=200, repeats=Repeats.LEFT_OUT),),
)
