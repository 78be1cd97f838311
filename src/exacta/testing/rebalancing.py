"""A rebalance of a group, made by a member that joins and leaves before it is given anything.

Theory of operation. A member that joins a group of the classic protocol makes it rebalance, and the group waits for the
other members, which learn of it by their next heartbeats. The member here leaves while the group waits, so that the
rebalance ends without it. It offers the protocol that the members have agreed on, since the group takes no other, and
subscribes to nothing.
"""

from typing import Any

from exacta.client.errors import KafkaError
from exacta.client.group_administration import listed_groups
from exacta.client.routing import GROUP, Client, Coordinator
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from exacta.protocol.kafka.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from exacta.protocol.kafka.messages.k15_describe_groups import DescribeGroupsRequest

_SESSION_TIMEOUT_MS = 30_000
_SUBSCRIBES_TO_NOTHING = bytes(2 + 4 + 4)
"""A subscription of version 0 without topics and user data: two bytes, and two counts of four."""


def rebalance(client: Client, group: str) -> None:
    """Let a group rebalance. Raises ValueError if it has no members, or is not of the classic protocol."""
    if group not in (each.group for each in listed_groups(client)):
        raise ValueError(f"rebalance({group!r}): there is no such group")
    route = Coordinator(GROUP, group)
    found = client.call(
        route,
        DescribeGroupsRequest(groups=[group]),
        what=f"looking at group '{group}'",
        codes=lambda reply: [each.error_code for each in reply.groups],
        never_retry=frozenset({ErrorCode.GROUP_ID_NOT_FOUND}),
    ).groups[0]
    if not found.members or not found.protocol_data:
        raise ValueError(f"rebalance({group!r}): the group has no members that have agreed on a protocol")
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=_SESSION_TIMEOUT_MS,
        rebalance_timeout_ms=_SESSION_TIMEOUT_MS,
        protocol_type=found.protocol_type,
        protocols=[JoinGroupRequestProtocol(name=found.protocol_data, metadata=_SUBSCRIBES_TO_NOTHING)],
    )
    deadline = client.deadline()
    node_id = client.resolve(route, deadline)
    assert node_id is not None
    joining = client.lease(node_id, deadline)
    try:
        reply: Any = joining.call(request, deadline)
        if reply.error_code != ErrorCode.MEMBER_ID_REQUIRED:
            raise KafkaError(reply.error_code, f"joining group '{group}'")
        request.member_id = reply.member_id
        joining.send(request, deadline)
        client.call(
            route,
            LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=reply.member_id)]),
            what=f"leaving group '{group}'",
            codes=lambda left: [left.error_code, *(each.error_code for each in left.members)],
            deadline=deadline,
        )
    finally:
        joining.close()
        client.release(node_id, joining)
