"""ListOffsets (key 2): look up offsets by timestamp or by end.

KIP-79; isolation level of KIP-98; KIP-320 leader epochs; KIP-734 largest timestamp; KIP-1075 time-out.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int8, Int16, Int32, Int64, Message, Schema, String, Structure


class ListOffsetsPartition(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    current_leader_epoch: Annotated[int, Int32("4+")] = -1
    timestamp: Annotated[int, Int64("0+")] = 0


class ListOffsetsTopic(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[ListOffsetsPartition], Array("0+")] = EMPTY


class ListOffsetsRequest(Message, kw_only=True):
    """Request of ListOffsets."""

    SCHEMA: ClassVar[Schema] = Schema(key=2, versions="1-11", flexible="6+")

    replica_id: Annotated[int, Int32("0+")] = 0
    isolation_level: Annotated[int, Int8("2+")] = 0
    topics: Annotated[list[ListOffsetsTopic], Array("0+")] = EMPTY
    timeout_ms: Annotated[int, Int32("10+")] = 0


class ListOffsetsPartitionResponse(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    timestamp: Annotated[int, Int64("1+")] = -1
    offset: Annotated[int, Int64("1+")] = -1
    leader_epoch: Annotated[int, Int32("4+")] = -1


class ListOffsetsTopicResponse(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[ListOffsetsPartitionResponse], Array("0+")] = EMPTY


class ListOffsetsResponse(Message, kw_only=True):
    """Response of ListOffsets."""

    SCHEMA: ClassVar[Schema] = Schema(key=2, versions="1-11", flexible="6+")

    throttle_time_ms: Annotated[int, Int32("2+")] = 0
    topics: Annotated[list[ListOffsetsTopicResponse], Array("0+")] = EMPTY
