"""ResetSubscription (key 17788): let a subscription of Apache Pulsar's go on elsewhere.

Exacta's own; no Kafka has it. See docs/reference/reset-subscription.md.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bool, Int16, Int32, Int64, Message, Schema, String, Structure


class PartitionReset(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    offset: Annotated[int, Int64("0+")] = -1
    timestamp_ms: Annotated[int, Int64("0+")] = -1


class TopicReset(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[PartitionReset], Array("0+")] = EMPTY


class ResetSubscriptionRequest(Message, kw_only=True):
    """Request of ResetSubscription."""

    SCHEMA: ClassVar[Schema] = Schema(key=17788, versions="0", flexible="0+")

    subscription: Annotated[str, String("0+")] = ""
    topics: Annotated[list[TopicReset], Array("0+")] = EMPTY
    validate_only: Annotated[bool, Bool("0+")] = False


class PartitionResult(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    old_position: Annotated[int, Int64("0+")] = -1
    position: Annotated[int, Int64("0+")] = -1
    closed_consumers: Annotated[int, Int32("0+")] = 0


class TopicResult(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[PartitionResult], Array("0+")] = EMPTY


class ResetSubscriptionResponse(Message, kw_only=True):
    """Response of ResetSubscription."""

    SCHEMA: ClassVar[Schema] = Schema(key=17788, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    topics: Annotated[list[TopicResult], Array("0+")] = EMPTY
