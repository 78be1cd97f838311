"""OffsetCommit (key 8): store a group's offsets.

KIP-345 static members; KIP-848 member epochs.
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


class OffsetCommitRequestPartition(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    committed_offset: Annotated[int, Int64("0+")] = 0
    committed_leader_epoch: Annotated[int, Int32("6+")] = -1
    committed_metadata: Annotated[str | None, String("0+", nullable="0+")] = None


class OffsetCommitRequestTopic(Structure, kw_only=True):
    name: Annotated[str, String("0-9")] = ""
    topic_id: Annotated[bytes, Uuid("10+")] = NO_UUID
    partitions: Annotated[list[OffsetCommitRequestPartition], Array("0+")] = EMPTY


class OffsetCommitRequest(Message, kw_only=True):
    """Request of OffsetCommit."""

    SCHEMA: ClassVar[Schema] = Schema(key=8, versions="2-10", flexible="8+")

    group_id: Annotated[str, String("0+")] = ""
    generation_id_or_member_epoch: Annotated[int, Int32("1+")] = -1
    member_id: Annotated[str, String("1+")] = ""
    group_instance_id: Annotated[str | None, String("7+", nullable="7+")] = None
    retention_time_ms: Annotated[int, Int64("2-4")] = -1
    topics: Annotated[list[OffsetCommitRequestTopic], Array("0+")] = EMPTY


class OffsetCommitResponsePartition(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0


class OffsetCommitResponseTopic(Structure, kw_only=True):
    name: Annotated[str, String("0-9")] = ""
    topic_id: Annotated[bytes, Uuid("10+")] = NO_UUID
    partitions: Annotated[list[OffsetCommitResponsePartition], Array("0+")] = EMPTY


class OffsetCommitResponse(Message, kw_only=True):
    """Response of OffsetCommit."""

    SCHEMA: ClassVar[Schema] = Schema(key=8, versions="2-10", flexible="8+")

    throttle_time_ms: Annotated[int, Int32("3+")] = 0
    topics: Annotated[list[OffsetCommitResponseTopic], Array("0+")] = EMPTY
