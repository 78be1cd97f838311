"""EndTxn (key 26): commit or abort a transaction.

KIP-98; KIP-890 epoch in the answer.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import Bool, Int16, Int32, Int64, Message, Schema, String


class EndTxnRequest(Message, kw_only=True):
    """Request of EndTxn."""

    SCHEMA: ClassVar[Schema] = Schema(key=26, versions="0-5", flexible="3+")

    transactional_id: Annotated[str, String("0+")] = ""
    producer_id: Annotated[int, Int64("0+")] = 0
    producer_epoch: Annotated[int, Int16("0+")] = 0
    committed: Annotated[bool, Bool("0+")] = False


class EndTxnResponse(Message, kw_only=True):
    """Response of EndTxn."""

    SCHEMA: ClassVar[Schema] = Schema(key=26, versions="0-5", flexible="3+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    producer_id: Annotated[int, Int64("5+")] = -1
    producer_epoch: Annotated[int, Int16("5+")] = -1
