"""OffsetFetch (key 9): read a group's offsets.

KIP-447 require stable; KIP-709 several groups.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import (
    EMPTY,
    NO_UUID,
    Array,
    Bool,
    Int16,
    Int32,
    Int64,
    Message,
    Schema,
    String,
    Structure,
    Uuid,
)


class OffsetFetchRequestTopic(Structure, kw_only=True):
    name: Annotated[str, String("0-7")] = ""
    partition_indexes: Annotated[list[int], Array("0-7", of=Int32)] = EMPTY


class OffsetFetchRequestTopics(Structure, kw_only=True):
    name: Annotated[str, String("8-9")] = ""
    topic_id: Annotated[bytes, Uuid("10+")] = NO_UUID
    partition_indexes: Annotated[list[int], Array("8+", of=Int32)] = EMPTY


class OffsetFetchRequestGroup(Structure, kw_only=True):
    group_id: Annotated[str, String("8+")] = ""
    member_id: Annotated[str | None, String("9+", nullable="9+")] = None
    member_epoch: Annotated[int, Int32("9+")] = -1
    topics: Annotated[list[OffsetFetchRequestTopics] | None, Array("8+", nullable="8+")] = None


class OffsetFetchRequest(Message, kw_only=True):
    """Request of OffsetFetch."""

    SCHEMA: ClassVar[Schema] = Schema(key=9, versions="1-10", flexible="6+")

    group_id: Annotated[str, String("0-7")] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, Array("0-7", nullable="2-7")] = EMPTY
    groups: Annotated[list[OffsetFetchRequestGroup], Array("8+")] = EMPTY
    require_stable: Annotated[bool, Bool("7+")] = False


class OffsetFetchResponsePartition(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0-7")] = 0
    committed_offset: Annotated[int, Int64("0-7")] = 0
    committed_leader_epoch: Annotated[int, Int32("5-7")] = -1
    metadata: Annotated[str | None, String("0-7", nullable="0-7")] = None
    error_code: Annotated[int, Int16("0-7")] = 0


class OffsetFetchResponseTopic(Structure, kw_only=True):
    name: Annotated[str, String("0-7")] = ""
    partitions: Annotated[list[OffsetFetchResponsePartition], Array("0-7")] = EMPTY


class OffsetFetchResponsePartitions(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("8+")] = 0
    committed_offset: Annotated[int, Int64("8+")] = 0
    committed_leader_epoch: Annotated[int, Int32("8+")] = -1
    metadata: Annotated[str | None, String("8+", nullable="8+")] = None
    error_code: Annotated[int, Int16("8+")] = 0


class OffsetFetchResponseTopics(Structure, kw_only=True):
    name: Annotated[str, String("8-9")] = ""
    topic_id: Annotated[bytes, Uuid("10+")] = NO_UUID
    partitions: Annotated[list[OffsetFetchResponsePartitions], Array("8+")] = EMPTY


class OffsetFetchResponseGroup(Structure, kw_only=True):
    group_id: Annotated[str, String("8+")] = ""
    topics: Annotated[list[OffsetFetchResponseTopics], Array("8+")] = EMPTY
    error_code: Annotated[int, Int16("8+")] = 0


class OffsetFetchResponse(Message, kw_only=True):
    """Response of OffsetFetch."""

    SCHEMA: ClassVar[Schema] = Schema(key=9, versions="1-10", flexible="6+")

    throttle_time_ms: Annotated[int, Int32("3+")] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], Array("0-7")] = EMPTY
    error_code: Annotated[int, Int16("2-7")] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], Array("8+")] = EMPTY
