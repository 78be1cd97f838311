"""DescribeGroups: members and assignments, for people and tools."""

from exacta.core.state.classic_membership import NOBODY, Member, Membership, Phase
from exacta.core.state.state import State
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.kafka.group_states import CLASSIC_STATES
from exacta.kafka.handler import Reply
from exacta.kafka.keys import ApiKey
from exacta.kafka.request_size import first_time
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k15_describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

KEY = ApiKey.DESCRIBE_GROUPS
MIN_VERSION = 0
MAX_VERSION = 6
NOT_FOUND_SINCE = 6  # KIP-1043
UNKNOWN_GROUP_STATE = "Dead"
"""What Kafka says of a group that nobody knows, up to version 5, instead of an error."""


def handle(broker: BrokerContext, request: DescribeGroupsRequest, context: RequestContext, reply: Reply) -> None:
    """Answer all groups from one state."""

    def view(state: State, now_ms: int) -> DescribeGroupsResponse:
        return DescribeGroupsResponse(
            groups=[_describe(state, group_id, context.version) for group_id in filter(first_time(), request.groups)]
        )

    broker.read(context, view, reply)


def _describe(state: State, group_id: str, version: int) -> DescribedGroup:
    membership = state.volatile.memberships.get(group_id, NOBODY)
    if group_id in state.volatile.consumer_groups or not state.has_group(group_id):
        unknown = DescribedGroup(group_id=group_id, group_state=UNKNOWN_GROUP_STATE)
        if version >= NOT_FOUND_SINCE:
            unknown.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            known = group_id in state.volatile.consumer_groups
            unknown.error_message = f"Group {group_id} " + ("is not a classic group." if known else "not found.")
        return unknown
    return DescribedGroup(
        group_id=group_id,
        group_state=CLASSIC_STATES[membership.phase],
        protocol_type=membership.protocol_type,
        protocol_data=membership.protocol if membership.phase is Phase.STABLE else "",
        members=[_describe_member(membership, member) for member in membership.members.values()],
    )


def _describe_member(membership: Membership, member: Member) -> DescribedGroupMember:
    stable = membership.phase is Phase.STABLE
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=dict(member.protocols).get(membership.protocol, b"") if stable else b"",
        member_assignment=member.assignment,
    )
