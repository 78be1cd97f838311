"""DescribeTopicPartitions (key 75): topics, page by page.

KIP-966.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import (
    EMPTY,
    NO_UUID,
    Array,
    Bool,
    Int16,
    Int32,
    Message,
    Nested,
    Schema,
    String,
    Structure,
    Uuid,
)


class TopicRequest(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""


class Cursor(Structure, kw_only=True):
    topic_name: Annotated[str, String("0+")] = ""
    partition_index: Annotated[int, Int32("0+")] = 0


class DescribeTopicPartitionsRequest(Message, kw_only=True):
    """Request of DescribeTopicPartitions."""

    SCHEMA: ClassVar[Schema] = Schema(key=75, versions="0", flexible="0+")

    topics: Annotated[list[TopicRequest], Array("0+")] = EMPTY
    response_partition_limit: Annotated[int, Int32("0+")] = 2000
    cursor: Annotated[Cursor | None, Nested("0+", nullable="0+")] = None


class DescribeTopicPartitionsResponsePartition(Structure, kw_only=True):
    error_code: Annotated[int, Int16("0+")] = 0
    partition_index: Annotated[int, Int32("0+")] = 0
    leader_id: Annotated[int, Int32("0+")] = 0
    leader_epoch: Annotated[int, Int32("0+")] = -1
    replica_nodes: Annotated[list[int], Array("0+", of=Int32)] = EMPTY
    isr_nodes: Annotated[list[int], Array("0+", of=Int32)] = EMPTY
    eligible_leader_replicas: Annotated[list[int] | None, Array("0+", nullable="0+", of=Int32)] = None
    last_known_elr: Annotated[list[int] | None, Array("0+", nullable="0+", of=Int32)] = None
    offline_replicas: Annotated[list[int], Array("0+", of=Int32)] = EMPTY


class DescribeTopicPartitionsResponseTopic(Structure, kw_only=True):
    error_code: Annotated[int, Int16("0+")] = 0
    name: Annotated[str | None, String("0+", nullable="0+")] = ""
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    is_internal: Annotated[bool, Bool("0+")] = False
    partitions: Annotated[list[DescribeTopicPartitionsResponsePartition], Array("0+")] = EMPTY
    topic_authorized_operations: Annotated[int, Int32("0+")] = -0x8000_0000


class DescribeTopicPartitionsResponse(Message, kw_only=True):
    """Response of DescribeTopicPartitions."""

    SCHEMA: ClassVar[Schema] = Schema(key=75, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    topics: Annotated[list[DescribeTopicPartitionsResponseTopic], Array("0+")] = EMPTY
    next_cursor: Annotated[Cursor | None, Nested("0+", nullable="0+")] = None
