"""DescribeLag (key 17785): how far groups are behind, in records that their readers get, and who holds back the rest.

Exacta's own; no Kafka has it. See docs/reference/describe-lag.md.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bool, Int16, Int32, Int64, Message, Schema, String, Structure


class DescribeLagRequest(Message, kw_only=True):
    """Request of DescribeLag."""

    SCHEMA: ClassVar[Schema] = Schema(key=17785, versions="0", flexible="0+")

    groups: Annotated[list[str], Array("0+", of=String)] = EMPTY


class OpenTransaction(Structure, kw_only=True):
    transactional_id: Annotated[str, String("0+")] = ""
    producer_id: Annotated[int, Int64("0+")] = -1
    producer_epoch: Annotated[int, Int16("0+")] = -1
    first_offset: Annotated[int, Int64("0+")] = -1
    start_ms: Annotated[int, Int64("0+")] = -1


class PartitionLag(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    committed_offset: Annotated[int, Int64("0+")] = -1
    commit_is_pending: Annotated[bool, Bool("0+")] = False
    log_start_offset: Annotated[int, Int64("0+")] = -1
    visible_end_offset: Annotated[int, Int64("0+")] = -1
    last_stable_offset: Annotated[int, Int64("0+")] = -1
    high_watermark: Annotated[int, Int64("0+")] = -1
    unread_records: Annotated[int, Int64("0+")] = 0
    held_back_records: Annotated[int, Int64("0+")] = 0
    open_transactions: Annotated[list[OpenTransaction], Array("0+")] = EMPTY


class TopicLag(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[PartitionLag], Array("0+")] = EMPTY


class GroupLag(Structure, kw_only=True):
    error_code: Annotated[int, Int16("0+")] = 0
    group_id: Annotated[str, String("0+")] = ""
    topics: Annotated[list[TopicLag], Array("0+")] = EMPTY


class DescribeLagResponse(Message, kw_only=True):
    """Response of DescribeLag."""

    SCHEMA: ClassVar[Schema] = Schema(key=17785, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    now_ms: Annotated[int, Int64("0+")] = 0
    groups: Annotated[list[GroupLag], Array("0+")] = EMPTY
