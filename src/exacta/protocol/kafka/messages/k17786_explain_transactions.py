"""ExplainTransactions (key 17786): what transactional ids are doing, whose they are, and what happened to them.

Exacta's own; no Kafka has it. See docs/reference/explain-transactions.md.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import (
    EMPTY,
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Schema,
    String,
    Structure,
)


class ExplainTransactionsRequest(Message, kw_only=True):
    """Request of ExplainTransactions."""

    SCHEMA: ClassVar[Schema] = Schema(key=17786, versions="0", flexible="0+")

    transactional_ids: Annotated[list[str] | None, Array("0+", of=String, nullable="0+")] = None
    handles: Annotated[list[int], Array("0+", of=Int64)] = EMPTY


class OpenPartition(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    first_offset: Annotated[int, Int64("0+")] = -1
    staged_records: Annotated[int, Int64("0+")] = 0
    staged_bytes: Annotated[int, Int64("0+")] = 0


class OpenTopic(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[OpenPartition], Array("0+")] = EMPTY


class Run(Structure, kw_only=True):
    first_offset: Annotated[int, Int64("0+")] = 0
    last_offset: Annotated[int, Int64("0+")] = 0


class AcknowledgedSubscription(Structure, kw_only=True):
    topic_name: Annotated[str, String("0+")] = ""
    partition_index: Annotated[int, Int32("0+")] = 0
    subscription: Annotated[str, String("0+")] = ""
    before_offset: Annotated[int, Int64("0+")] = -1
    run_count: Annotated[int, Int32("0+")] = 0
    runs: Annotated[list[Run], Array("0+")] = EMPTY


class Incident(Structure, kw_only=True):
    what: Annotated[int, Int8("0+")] = 0
    cause: Annotated[int, Int8("0+")] = 0
    at_ms: Annotated[int, Int64("0+")] = 0
    producer_id: Annotated[int, Int64("0+")] = 0
    producer_epoch: Annotated[int, Int16("0+")] = 0
    client_id: Annotated[str, String("0+")] = ""
    client_host: Annotated[str, String("0+")] = ""


class ExplainedTransaction(Structure, kw_only=True):
    error_code: Annotated[int, Int16("0+")] = 0
    transactional_id: Annotated[str, String("0+")] = ""
    is_handle: Annotated[bool, Bool("0+")] = False
    is_joint: Annotated[bool, Bool("0+")] = False
    transaction_id: Annotated[int, Int64("0+")] = -1
    transaction_state: Annotated[str, String("0+")] = ""
    producer_id: Annotated[int, Int64("0+")] = -1
    producer_epoch: Annotated[int, Int16("0+")] = -1
    client_id: Annotated[str, String("0+")] = ""
    client_host: Annotated[str, String("0+")] = ""
    last_update_ms: Annotated[int, Int64("0+")] = -1
    open_producer_id: Annotated[int, Int64("0+")] = -1
    open_producer_epoch: Annotated[int, Int16("0+")] = -1
    start_ms: Annotated[int, Int64("0+")] = -1
    deadline_ms: Annotated[int, Int64("0+")] = -1
    topics: Annotated[list[OpenTopic], Array("0+")] = EMPTY
    groups: Annotated[list[str], Array("0+", of=String)] = EMPTY
    subscription_count: Annotated[int, Int32("0+")] = 0
    subscriptions: Annotated[list[AcknowledgedSubscription], Array("0+")] = EMPTY
    incidents: Annotated[list[Incident], Array("0+")] = EMPTY


class ExplainTransactionsResponse(Message, kw_only=True):
    """Response of ExplainTransactions."""

    SCHEMA: ClassVar[Schema] = Schema(key=17786, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    now_ms: Annotated[int, Int64("0+")] = 0
    transactions: Annotated[list[ExplainedTransaction], Array("0+")] = EMPTY
