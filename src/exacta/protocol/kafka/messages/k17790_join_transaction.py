"""JoinTransaction (key 17790): a transactional id's transaction becomes known by its id, or a handle the id's own.

Exacta's own; no Kafka has it. See docs/reference/join-transaction.md.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import Int16, Int32, Int64, Message, Schema, String


class JoinTransactionRequest(Message, kw_only=True):
    """Request of JoinTransaction."""

    SCHEMA: ClassVar[Schema] = Schema(key=17790, versions="0", flexible="0+")

    transactional_id: Annotated[str, String("0+")] = ""
    producer_id: Annotated[int, Int64("0+")] = -1
    producer_epoch: Annotated[int, Int16("0+")] = -1
    transaction_id: Annotated[int, Int64("0+")] = -1


class JoinTransactionResponse(Message, kw_only=True):
    """Response of JoinTransaction."""

    SCHEMA: ClassVar[Schema] = Schema(key=17790, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    transaction_id: Annotated[int, Int64("0+")] = -1
