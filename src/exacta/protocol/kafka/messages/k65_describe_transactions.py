"""DescribeTransactions (key 65): state of transactions.

KIP-664.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int16, Int32, Int64, Message, Schema, String, Structure


class DescribeTransactionsRequest(Message, kw_only=True):
    """Request of DescribeTransactions."""

    SCHEMA: ClassVar[Schema] = Schema(key=65, versions="0", flexible="0+")

    transactional_ids: Annotated[list[str], Array("0+", of=String)] = EMPTY


class TopicData(Structure, kw_only=True):
    topic: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = EMPTY


class TransactionState(Structure, kw_only=True):
    error_code: Annotated[int, Int16("0+")] = 0
    transactional_id: Annotated[str, String("0+")] = ""
    transaction_state: Annotated[str, String("0+")] = ""
    transaction_timeout_ms: Annotated[int, Int32("0+")] = 0
    transaction_start_time_ms: Annotated[int, Int64("0+")] = 0
    producer_id: Annotated[int, Int64("0+")] = 0
    producer_epoch: Annotated[int, Int16("0+")] = 0
    topics: Annotated[list[TopicData], Array("0+")] = EMPTY


class DescribeTransactionsResponse(Message, kw_only=True):
    """Response of DescribeTransactions."""

    SCHEMA: ClassVar[Schema] = Schema(key=65, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    transaction_states: Annotated[list[TransactionState], Array("0+")] = EMPTY
