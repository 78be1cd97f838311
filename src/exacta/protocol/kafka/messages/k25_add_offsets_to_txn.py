"""AddOffsetsToTxn (key 25): add a group's offsets to a transaction.

KIP-98.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import Int16, Int32, Int64, Message, Schema, String


class AddOffsetsToTxnRequest(Message, kw_only=True):
    """Request of AddOffsetsToTxn."""

    SCHEMA: ClassVar[Schema] = Schema(key=25, versions="0-4", flexible="3+")

    transactional_id: Annotated[str, String("0+")] = ""
    producer_id: Annotated[int, Int64("0+")] = 0
    producer_epoch: Annotated[int, Int16("0+")] = 0
    group_id: Annotated[str, String("0+")] = ""


class AddOffsetsToTxnResponse(Message, kw_only=True):
    """Response of AddOffsetsToTxn."""

    SCHEMA: ClassVar[Schema] = Schema(key=25, versions="0-4", flexible="3+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
