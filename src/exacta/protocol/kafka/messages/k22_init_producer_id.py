"""InitProducerId (key 22): obtain or fence a producer id.

KIP-98; KIP-360 recovery; KIP-890; KIP-939 two-phase commit.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import Bool, Int16, Int32, Int64, Message, Schema, String


class InitProducerIdRequest(Message, kw_only=True):
    """Request of InitProducerId."""

    SCHEMA: ClassVar[Schema] = Schema(key=22, versions="0-6", flexible="2+")

    transactional_id: Annotated[str | None, String("0+", nullable="0+")] = None
    transaction_timeout_ms: Annotated[int, Int32("0+")] = 0
    producer_id: Annotated[int, Int64("3+")] = -1
    producer_epoch: Annotated[int, Int16("3+")] = -1
    enable_2pc: Annotated[bool, Bool("6+")] = False
    keep_prepared_txn: Annotated[bool, Bool("6+")] = False


class InitProducerIdResponse(Message, kw_only=True):
    """Response of InitProducerId."""

    SCHEMA: ClassVar[Schema] = Schema(key=22, versions="0-6", flexible="2+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    producer_id: Annotated[int, Int64("0+")] = -1
    producer_epoch: Annotated[int, Int16("0+")] = 0
    ongoing_txn_producer_id: Annotated[int, Int64("6+")] = -1
    ongoing_txn_producer_epoch: Annotated[int, Int16("6+")] = -1
