"""OffsetDelete (key 47): delete a group's offsets of some partitions.

KIP-496.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int16, Int32, Message, Schema, String, Structure


class OffsetDeleteRequestPartition(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0


class OffsetDeleteRequestTopic(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[OffsetDeleteRequestPartition], Array("0+")] = EMPTY


class OffsetDeleteRequest(Message, kw_only=True):
    """Request of OffsetDelete."""

    SCHEMA: ClassVar[Schema] = Schema(key=47, versions="0")

    group_id: Annotated[str, String("0+")] = ""
    topics: Annotated[list[OffsetDeleteRequestTopic], Array("0+")] = EMPTY


class OffsetDeleteResponsePartition(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0


class OffsetDeleteResponseTopic(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[OffsetDeleteResponsePartition], Array("0+")] = EMPTY


class OffsetDeleteResponse(Message, kw_only=True):
    """Response of OffsetDelete."""

    SCHEMA: ClassVar[Schema] = Schema(key=47, versions="0")

    error_code: Annotated[int, Int16("0+")] = 0
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    topics: Annotated[list[OffsetDeleteResponseTopic], Array("0+")] = EMPTY
