"""MoveLead (key 17793): the broker that leads the log lets another one lead.

Exacta's own; no Kafka has it. See docs/reference/move-lead.md.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import Int16, Int32, Int64, Message, Schema, String


class MoveLeadRequest(Message, kw_only=True):
    """Request of MoveLead."""

    SCHEMA: ClassVar[Schema] = Schema(key=17793, versions="0", flexible="0+")

    epoch: Annotated[int, Int64("0+")] = 0
    node_id: Annotated[int, Int32("0+")] = -1


class MoveLeadResponse(Message, kw_only=True):
    """Response of MoveLead."""

    SCHEMA: ClassVar[Schema] = Schema(key=17793, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
