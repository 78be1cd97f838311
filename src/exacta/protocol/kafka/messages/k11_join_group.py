"""JoinGroup (key 11): enter a group's rebalance.

KIP-62; KIP-345 static members; KIP-394 member id first; KIP-800 reason.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bool, Bytes, Int16, Int32, Message, Schema, String, Structure


class JoinGroupRequestProtocol(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    metadata: Annotated[bytes, Bytes("0+")] = b""


class JoinGroupRequest(Message, kw_only=True):
    """Request of JoinGroup."""

    SCHEMA: ClassVar[Schema] = Schema(key=11, versions="0-9", flexible="6+")

    group_id: Annotated[str, String("0+")] = ""
    session_timeout_ms: Annotated[int, Int32("0+")] = 0
    rebalance_timeout_ms: Annotated[int, Int32("1+")] = -1
    member_id: Annotated[str, String("0+")] = ""
    group_instance_id: Annotated[str | None, String("5+", nullable="5+")] = None
    protocol_type: Annotated[str, String("0+")] = ""
    protocols: Annotated[list[JoinGroupRequestProtocol], Array("0+")] = EMPTY
    reason: Annotated[str | None, String("8+", nullable="8+")] = None


class JoinGroupResponseMember(Structure, kw_only=True):
    member_id: Annotated[str, String("0+")] = ""
    group_instance_id: Annotated[str | None, String("5+", nullable="5+")] = None
    metadata: Annotated[bytes, Bytes("0+")] = b""


class JoinGroupResponse(Message, kw_only=True):
    """Response of JoinGroup."""

    SCHEMA: ClassVar[Schema] = Schema(key=11, versions="0-9", flexible="6+")

    throttle_time_ms: Annotated[int, Int32("2+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    generation_id: Annotated[int, Int32("0+")] = -1
    protocol_type: Annotated[str | None, String("7+", nullable="7+")] = None
    protocol_name: Annotated[str | None, String("0+", nullable="7+")] = ""
    leader: Annotated[str, String("0+")] = ""
    skip_assignment: Annotated[bool, Bool("9+")] = False
    member_id: Annotated[str, String("0+")] = ""
    members: Annotated[list[JoinGroupResponseMember], Array("0+")] = EMPTY
