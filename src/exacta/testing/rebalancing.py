"""A rebalance of a group, made from outside of it.

Theory of operation. A member that joins a group of the classic protocol makes it rebalance, and the group waits for the
other members, which learn of it by their next heartbeats. The member here leaves while the group waits, so that the
rebalance ends without it. It offers the protocol that the members have agreed on, since the group takes no other, and
subscribes to nothing.

A group of the consumer protocol (KIP-848) gives such a member nothing and takes nothing from the others. So its members
are removed, each in its own name. They learn of it by their next heartbeats, lose their partitions, and join again.
"""

from typing import Any

from exacta.client.errors import KafkaError
from exacta.client.group_administration import listed_groups
from exacta.client.group_member import remove_member
from exacta.client.routing import GROUP, Client, Coordinator
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from exacta.protocol.kafka.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from exacta.protocol.kafka.messages.k15_describe_groups import DescribeGroupsRequest
from exacta.protocol.kafka.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest

_SESSION_TIMEOUT_MS = 30_000
_SUBSCRIBES_TO_NOTHING = bytes(2 + 4 + 4)
"""A subscription of version 0 without topics and user data: two bytes, and two counts of four."""


def rebalance(client: Client, group: str) -> None:
    """Let a group rebalance. Raises ValueError if it has no members."""
    if group not in (each.group for each in listed_groups(client)):
        raise ValueError(f"rebalance({group!r}): there is no such group")
    members = _consumer_members(client, group)
    for member_id in members:
        remove_member(client, group, member_id)
    if not members:
        _join_and_leave(client, group)


def _consumer_members(client: Client, group: str) -> list[str]:
    """Return the members of a group of the consumer protocol; none where it is of the classic one."""
    reply = client.call(
        Coordinator(GROUP, group),
        ConsumerGroupDescribeRequest(group_ids=[group]),
        what=f"looking at group '{group}'",
        codes=lambda reply: [
            each.error_code for each in reply.groups if each.error_code != ErrorCode.GROUP_ID_NOT_FOUND
        ],
    )
    return [member.member_id for each in reply.groups for member in each.members]


def _join_and_leave(client: Client, group: str) -> None:
    route = Coordinator(GROUP, group)
    found = client.call(
        route,
        DescribeGroupsRequest(groups=[group]),
        what=f"looking at group '{group}'",
        codes=lambda reply: [each.error_code for each in reply.groups],
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
        # One behind the other on one connection, so that they are carried out in this order.
        joining.send(request, deadline)
        joining.send(LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=reply.member_id)]), deadline)
        joining.receive(deadline)  # that the member is not there any more
        left: Any = joining.receive(deadline)
        codes = [code for code in (left.error_code, *(each.error_code for each in left.members)) if code]
        if codes:
            raise KafkaError(codes[0], f"leaving group '{group}'")
    finally:
        joining.close()
        client.release(node_id, joining)
