"""Heartbeat (key 12): stay in a group.

KIP-62; KIP-345 static members.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import Int16, Int32, Message, Schema, String


class HeartbeatRequest(Message, kw_only=True):
    """Request of Heartbeat."""

    SCHEMA: ClassVar[Schema] = Schema(key=12, versions="0-4", flexible="4+")

    group_id: Annotated[str, String("0+")] = ""
    generation_id: Annotated[int, Int32("0+")] = 0
    member_id: Annotated[str, String("0+")] = ""
    group_instance_id: Annotated[str | None, String("3+", nullable="3+")] = None


class HeartbeatResponse(Message, kw_only=True):
    """Response of Heartbeat."""

    SCHEMA: ClassVar[Schema] = Schema(key=12, versions="0-4", flexible="4+")

    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
