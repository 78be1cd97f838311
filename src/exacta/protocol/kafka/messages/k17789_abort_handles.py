"""AbortHandles (key 17789): an operator aborts transactions that have no transactional id, by their ids.

Exacta's own; no Kafka has it. See docs/reference/abort-handles.md.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int16, Int32, Int64, Message, Schema, Structure


class AbortHandlesRequest(Message, kw_only=True):
    """Request of AbortHandles."""

    SCHEMA: ClassVar[Schema] = Schema(key=17789, versions="0", flexible="0+")

    handles: Annotated[list[int], Array("0+", of=Int64)] = EMPTY


class HandleResult(Structure, kw_only=True):
    transaction_id: Annotated[int, Int64("0+")] = -1
    error_code: Annotated[int, Int16("0+")] = 0


class AbortHandlesResponse(Message, kw_only=True):
    """Response of AbortHandles."""

    SCHEMA: ClassVar[Schema] = Schema(key=17789, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    results: Annotated[list[HandleResult], Array("0+")] = EMPTY
