"""SyncGroup (key 14): hand out and receive a group's assignment.

KIP-62; KIP-345; KIP-559 protocol type and name.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bytes, Int16, Int32, Message, Schema, String, Structure


class SyncGroupRequestAssignment(Structure, kw_only=True):
    member_id: Annotated[str, String("0+")] = ""
    assignment: Annotated[bytes, Bytes("0+")] = b""


class SyncGroupRequest(Message, kw_only=True):
    """Request of SyncGroup."""

    SCHEMA: ClassVar[Schema] = Schema(key=14, versions="0-5", flexible="4+")

    group_id: Annotated[str, String("0+")] = ""
    generation_id: Annotated[int, Int32("0+")] = 0
    member_id: Annotated[str, String("0+")] = ""
    group_instance_id: Annotated[str | None, String("3+", nullable="3+")] = None
    protocol_type: Annotated[str | None, String("5+", nullable="5+")] = None
    protocol_name: Annotated[str | None, String("5+", nullable="5+")] = None
    assignments: Annotated[list[SyncGroupRequestAssignment], Array("0+")] = EMPTY


class SyncGroupResponse(Message, kw_only=True):
    """Response of SyncGroup."""

    SCHEMA: ClassVar[Schema] = Schema(key=14, versions="0-5", flexible="4+")

    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    protocol_type: Annotated[str | None, String("5+", nullable="5+")] = None
    protocol_name: Annotated[str | None, String("5+", nullable="5+")] = None
    assignment: Annotated[bytes, Bytes("0+")] = b""
