"""LeaveGroup (key 13): leave a group.

KIP-345 several members; KIP-800 reason.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int16, Int32, Message, Schema, String, Structure


class MemberIdentity(Structure, kw_only=True):
    member_id: Annotated[str, String("3+")] = ""
    group_instance_id: Annotated[str | None, String("3+", nullable="3+")] = None
    reason: Annotated[str | None, String("5+", nullable="5+")] = None


class LeaveGroupRequest(Message, kw_only=True):
    """Request of LeaveGroup."""

    SCHEMA: ClassVar[Schema] = Schema(key=13, versions="0-5", flexible="4+")

    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0-2")] = ""
    members: Annotated[list[MemberIdentity], Array("3+")] = EMPTY


class MemberResponse(Structure, kw_only=True):
    member_id: Annotated[str, String("3+")] = ""
    group_instance_id: Annotated[str | None, String("3+", nullable="3+")] = None
    error_code: Annotated[int, Int16("3+")] = 0


class LeaveGroupResponse(Message, kw_only=True):
    """Response of LeaveGroup."""

    SCHEMA: ClassVar[Schema] = Schema(key=13, versions="0-5", flexible="4+")

    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    members: Annotated[list[MemberResponse], Array("3+")] = EMPTY
