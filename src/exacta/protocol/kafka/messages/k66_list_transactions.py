"""ListTransactions (key 66): transactions of a coordinator.

KIP-664; KIP-994 duration filter; KIP-1152 id pattern.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int16, Int32, Int64, Message, Schema, String, Structure


class ListTransactionsRequest(Message, kw_only=True):
    """Request of ListTransactions."""

    SCHEMA: ClassVar[Schema] = Schema(key=66, versions="0-2", flexible="0+")

    state_filters: Annotated[list[str], Array("0+", of=String)] = EMPTY
    producer_id_filters: Annotated[list[int], Array("0+", of=Int64)] = EMPTY
    duration_filter: Annotated[int, Int64("1+")] = -1
    transactional_id_pattern: Annotated[str | None, String("2+", nullable="2+")] = None


class TransactionState(Structure, kw_only=True):
    transactional_id: Annotated[str, String("0+")] = ""
    producer_id: Annotated[int, Int64("0+")] = 0
    transaction_state: Annotated[str, String("0+")] = ""


class ListTransactionsResponse(Message, kw_only=True):
    """Response of ListTransactions."""

    SCHEMA: ClassVar[Schema] = Schema(key=66, versions="0-2", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    unknown_state_filters: Annotated[list[str], Array("0+", of=String)] = EMPTY
    transaction_states: Annotated[list[TransactionState], Array("0+")] = EMPTY
