"""DescribeSubscriptions (key 17787): Apache Pulsar's subscriptions, page by page, with what they have yet to get.

Exacta's own; no Kafka has it. See docs/reference/describe-subscriptions.md.
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
    Nested,
    Schema,
    String,
    Structure,
)


class TopicRequest(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int] | None, Array("0+", of=Int32, nullable="0+")] = None


class Cursor(Structure, kw_only=True):
    topic_name: Annotated[str, String("0+")] = ""
    partition_index: Annotated[int, Int32("0+")] = 0
    subscription: Annotated[str, String("0+")] = ""


class DescribeSubscriptionsRequest(Message, kw_only=True):
    """Request of DescribeSubscriptions."""

    SCHEMA: ClassVar[Schema] = Schema(key=17787, versions="0", flexible="0+")

    topics: Annotated[list[TopicRequest] | None, Array("0+", nullable="0+")] = None
    subscriptions: Annotated[list[str] | None, Array("0+", of=String, nullable="0+")] = None
    include_details: Annotated[bool, Bool("0+")] = False
    subscription_limit: Annotated[int, Int32("0+")] = 1000
    cursor: Annotated[Cursor | None, Nested("0+", nullable="0+")] = None


class Run(Structure, kw_only=True):
    first_offset: Annotated[int, Int64("0+")] = 0
    last_offset: Annotated[int, Int64("0+")] = 0


class PendingAcknowledgements(Structure, kw_only=True):
    transaction_id: Annotated[int, Int64("0+")] = 0
    before_offset: Annotated[int, Int64("0+")] = -1
    run_count: Annotated[int, Int32("0+")] = 0
    runs: Annotated[list[Run], Array("0+")] = EMPTY


class Consumer(Structure, kw_only=True):
    consumer_id: Annotated[int, Int64("0+")] = 0
    name: Annotated[str, String("0+")] = ""
    priority: Annotated[int, Int32("0+")] = 0
    permits: Annotated[int, Int64("0+")] = 0
    held_messages: Annotated[int, Int64("0+")] = 0
    is_active: Annotated[bool, Bool("0+")] = False


class Property(Structure, kw_only=True):
    key: Annotated[str, String("0+")] = ""
    value: Annotated[str, String("0+")] = ""


class DescribedSubscription(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    subscription_type: Annotated[int, Int8("0+")] = 0
    is_durable: Annotated[bool, Bool("0+")] = True
    created_ms: Annotated[int, Int64("0+")] = -1
    position: Annotated[int, Int64("0+")] = 0
    consumer_count: Annotated[int, Int32("0+")] = 0
    left_messages: Annotated[int, Int64("0+")] = 0
    pending_messages: Annotated[int, Int64("0+")] = 0
    held_back_messages: Annotated[int, Int64("0+")] = 0
    uncommitted_messages: Annotated[int, Int64("0+")] = -1
    acknowledged_run_count: Annotated[int, Int32("0+")] = 0
    acknowledged_runs: Annotated[list[Run], Array("0+")] = EMPTY
    pending_transaction_count: Annotated[int, Int32("0+")] = 0
    pending: Annotated[list[PendingAcknowledgements], Array("0+")] = EMPTY
    consumers: Annotated[list[Consumer], Array("0+")] = EMPTY
    noted_entries: Annotated[int, Int32("0+")] = 0
    waiting_entries: Annotated[int, Int32("0+")] = 0
    redelivered_entries: Annotated[int, Int32("0+")] = 0
    most_redeliveries: Annotated[int, Int32("0+")] = 0
    waits_for: Annotated[list[int], Array("0+", of=Int8)] = EMPTY
    properties: Annotated[list[Property], Array("0+")] = EMPTY
    isolation_level: Annotated[int, Int8("0+", tag=0)] = 0


class OpenTransaction(Structure, kw_only=True):
    transactional_id: Annotated[str, String("0+")] = ""
    first_offset: Annotated[int, Int64("0+")] = -1
    start_ms: Annotated[int, Int64("0+")] = -1


class DescribedPartition(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    log_start_offset: Annotated[int, Int64("0+")] = -1
    last_stable_offset: Annotated[int, Int64("0+")] = -1
    high_watermark: Annotated[int, Int64("0+")] = -1
    is_over_quota: Annotated[bool, Bool("0+")] = False
    open_transactions: Annotated[list[OpenTransaction], Array("0+")] = EMPTY
    subscriptions: Annotated[list[DescribedSubscription], Array("0+")] = EMPTY


class DescribedTopic(Structure, kw_only=True):
    error_code: Annotated[int, Int16("0+")] = 0
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[DescribedPartition], Array("0+")] = EMPTY


class DescribeSubscriptionsResponse(Message, kw_only=True):
    """Response of DescribeSubscriptions."""

    SCHEMA: ClassVar[Schema] = Schema(key=17787, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    now_ms: Annotated[int, Int64("0+")] = 0
    topics: Annotated[list[DescribedTopic], Array("0+")] = EMPTY
    next_cursor: Annotated[Cursor | None, Nested("0+", nullable="0+")] = None
