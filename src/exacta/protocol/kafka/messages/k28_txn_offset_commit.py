"""TxnOffsetCommit (key 28): store a group's offsets in a transaction.

KIP-98; KIP-447 fencing by generation; KIP-1319 topic ids.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import (
    EMPTY,
    NO_UUID,
    Array,
    Int16,
    Int32,
    Int64,
    Message,
    Schema,
    String,
    Structure,
    Uuid,
)


class TxnOffsetCommitRequestPartition(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    committed_offset: Annotated[int, Int64("0+")] = 0
    committed_leader_epoch: Annotated[int, Int32("2+")] = -1
    committed_metadata: Annotated[str | None, String("0+", nullable="0+")] = None


class TxnOffsetCommitRequestTopic(Structure, kw_only=True):
    name: Annotated[str, String("0-5")] = ""
    topic_id: Annotated[bytes, Uuid("6+")] = NO_UUID
    partitions: Annotated[list[TxnOffsetCommitRequestPartition], Array("0+")] = EMPTY


class TxnOffsetCommitRequest(Message, kw_only=True):
    """Request of TxnOffsetCommit."""

    SCHEMA: ClassVar[Schema] = Schema(key=28, versions="0-6", flexible="3+")

    transactional_id: Annotated[str, String("0+")] = ""
    group_id: Annotated[str, String("0+")] = ""
    producer_id: Annotated[int, Int64("0+")] = 0
    producer_epoch: Annotated[int, Int16("0+")] = 0
    generation_id: Annotated[int, Int32("3+")] = -1
    member_id: Annotated[str, String("3+")] = ""
    group_instance_id: Annotated[str | None, String("3+", nullable="3+")] = None
    topics: Annotated[list[TxnOffsetCommitRequestTopic], Array("0+")] = EMPTY


class TxnOffsetCommitResponsePartition(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0


class TxnOffsetCommitResponseTopic(Structure, kw_only=True):
    name: Annotated[str, String("0-5")] = ""
    topic_id: Annotated[bytes, Uuid("6+")] = NO_UUID
    partitions: Annotated[list[TxnOffsetCommitResponsePartition], Array("0+")] = EMPTY


class TxnOffsetCommitResponse(Message, kw_only=True):
    """Response of TxnOffsetCommit."""

    SCHEMA: ClassVar[Schema] = Schema(key=28, versions="0-6", flexible="3+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    topics: Annotated[list[TxnOffsetCommitResponseTopic], Array("0+")] = EMPTY
