"""ConsumerGroupDescribe (key 69): state and members of groups of the consumer protocol.

KIP-848; KIP-1099 type of a member.
"""

from typing import Annotated, ClassVar

from msgspec import field

from exacta.protocol.kafka.schema import (
    EMPTY,
    NO_UUID,
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    Nested,
    Schema,
    String,
    Structure,
    Uuid,
)


class ConsumerGroupDescribeRequest(Message, kw_only=True):
    """Request of ConsumerGroupDescribe."""

    SCHEMA: ClassVar[Schema] = Schema(key=69, versions="0-1", flexible="0+")

    group_ids: Annotated[list[str], Array("0+", of=String)] = EMPTY
    include_authorized_operations: Annotated[bool, Bool("0+")] = False


class TopicPartitions(Structure, kw_only=True):
    topic_id: Annotated[bytes, Uuid("0+")] = NO_UUID
    topic_name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = EMPTY


class Assignment(Structure, kw_only=True):
    topic_partitions: Annotated[list[TopicPartitions], Array("0+")] = EMPTY


class Member(Structure, kw_only=True):
    member_id: Annotated[str, String("0+")] = ""
    instance_id: Annotated[str | None, String("0+", nullable="0+")] = None
    rack_id: Annotated[str | None, String("0+", nullable="0+")] = None
    member_epoch: Annotated[int, Int32("0+")] = 0
    client_id: Annotated[str, String("0+")] = ""
    client_host: Annotated[str, String("0+")] = ""
    subscribed_topic_names: Annotated[list[str], Array("0+", of=String)] = EMPTY
    subscribed_topic_regex: Annotated[str | None, String("0+", nullable="0+")] = None
    assignment: Annotated[Assignment, Nested("0+")] = field(default_factory=Assignment)
    target_assignment: Annotated[Assignment, Nested("0+")] = field(default_factory=Assignment)
    member_type: Annotated[int, Int8("1+")] = -1


class DescribedGroup(Structure, kw_only=True):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    group_id: Annotated[str, String("0+")] = ""
    group_state: Annotated[str, String("0+")] = ""
    group_epoch: Annotated[int, Int32("0+")] = 0
    assignment_epoch: Annotated[int, Int32("0+")] = 0
    assignor_name: Annotated[str, String("0+")] = ""
    members: Annotated[list[Member], Array("0+")] = EMPTY
    authorized_operations: Annotated[int, Int32("0+")] = -0x8000_0000


class ConsumerGroupDescribeResponse(Message, kw_only=True):
    """Response of ConsumerGroupDescribe."""

    SCHEMA: ClassVar[Schema] = Schema(key=69, versions="0-1", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    groups: Annotated[list[DescribedGroup], Array("0+")] = EMPTY
