"""EndTransactions (key 17784): commit or abort a set of transactions in one step, all or none.

Exacta's own; no Kafka has it. See docs/reference/end-transactions.md, and `exacta.kafka.handlers` for why this key.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bool, Int16, Int32, Int64, Message, Schema, String, Structure


class TransactionToEndTopic(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = EMPTY


class TransactionToEnd(Structure, kw_only=True):
    transactional_id: Annotated[str, String("0+")] = ""
    producer_id: Annotated[int, Int64("0+")] = 0
    producer_epoch: Annotated[int, Int16("0+")] = 0
    topics: Annotated[list[TransactionToEndTopic], Array("0+")] = EMPTY


class EndTransactionsRequest(Message, kw_only=True):
    """Request of EndTransactions."""

    SCHEMA: ClassVar[Schema] = Schema(key=17784, versions="0", flexible="0+")

    committed: Annotated[bool, Bool("0+")] = False
    transactions: Annotated[list[TransactionToEnd], Array("0+")] = EMPTY


class RefusedTransaction(Structure, kw_only=True):
    transactional_id: Annotated[str, String("0+")] = ""
    error_code: Annotated[int, Int16("0+")] = 0


class EndTransactionsResponse(Message, kw_only=True):
    """Response of EndTransactions."""

    SCHEMA: ClassVar[Schema] = Schema(key=17784, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    refused: Annotated[list[RefusedTransaction], Array("0+")] = EMPTY
