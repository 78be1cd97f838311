"""ConsumerGroupHeartbeat (key 68): belong to a group of the consumer protocol.

KIP-848; KIP-1082 member ids of the clients' own.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import (
    EMPTY,
    NO_UUID,
    Array,
    Int16,
    Int32,
    Message,
    Nested,
    Schema,
    String,
    Structure,
    Uuid,
)


class TopicPartitions(Structure, kw_only=True):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    partitions: Annotated[list[int], Array("0+", of=Int32)] = EMPTY


class ConsumerGroupHeartbeatRequest(Message, kw_only=True):
    """Request of ConsumerGroupHeartbeat."""

    SCHEMA: ClassVar[Schema] = Schema(key=68, versions="0-1", flexible="0+")

    group_id: Annotated[str, String("0+")] = ""
    member_id: Annotated[str, String("0+")] = ""
    member_epoch: Annotated[int, Int32("0+")] = 0
    instance_id: Annotated[str | None, String("0+", nullable="0+")] = None
    rack_id: Annotated[str | None, String("0+", nullable="0+")] = None
    rebalance_timeout_ms: Annotated[int, Int32("0+")] = -1
    subscribed_topic_names: Annotated[list[str] | None, Array("0+", of=String, nullable="0+")] = None
    subscribed_topic_regex: Annotated[str | None, String("1+", nullable="1+")] = None
    server_assignor: Annotated[str | None, String("0+", nullable="0+")] = None
    topic_partitions: Annotated[list[TopicPartitions] | None, Array("0+", nullable="0+")] = None


class Assignment(Structure, kw_only=True):
    topic_partitions: Annotated[list[TopicPartitions], Array("0+")] = EMPTY


class ConsumerGroupHeartbeatResponse(Message, kw_only=True):
    """Response of ConsumerGroupHeartbeat."""

    SCHEMA: ClassVar[Schema] = Schema(key=68, versions="0-1", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    member_id: Annotated[str | None, String("0+", nullable="0+")] = None
    member_epoch: Annotated[int, Int32("0+")] = 0
    heartbeat_interval_ms: Annotated[int, Int32("0+")] = 0
    assignment: Annotated[Assignment | None, Nested("0+", nullable="0+")] = None
