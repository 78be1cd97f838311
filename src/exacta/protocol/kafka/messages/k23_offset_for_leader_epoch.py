"""OffsetForLeaderEpoch (key 23): where the records of a leader epoch end.

KIP-101; KIP-320 for consumers.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int16, Int32, Int64, Message, Schema, String, Structure


class OffsetForLeaderPartition(Structure, kw_only=True):
    partition: Annotated[int, Int32("0+")] = 0
    current_leader_epoch: Annotated[int, Int32("2+")] = -1
    leader_epoch: Annotated[int, Int32("0+")] = 0


class OffsetForLeaderTopic(Structure, kw_only=True):
    topic: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[OffsetForLeaderPartition], Array("0+")] = EMPTY


class OffsetForLeaderEpochRequest(Message, kw_only=True):
    """Request of OffsetForLeaderEpoch."""

    SCHEMA: ClassVar[Schema] = Schema(key=23, versions="2-4", flexible="4+")

    replica_id: Annotated[int, Int32("3+")] = -2
    topics: Annotated[list[OffsetForLeaderTopic], Array("0+")] = EMPTY


class EpochEndOffset(Structure, kw_only=True):
    error_code: Annotated[int, Int16("0+")] = 0
    partition: Annotated[int, Int32("0+")] = 0
    leader_epoch: Annotated[int, Int32("1+")] = -1
    end_offset: Annotated[int, Int64("0+")] = -1


class OffsetForLeaderTopicResult(Structure, kw_only=True):
    topic: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[EpochEndOffset], Array("0+")] = EMPTY


class OffsetForLeaderEpochResponse(Message, kw_only=True):
    """Response of OffsetForLeaderEpoch."""

    SCHEMA: ClassVar[Schema] = Schema(key=23, versions="2-4", flexible="4+")

    throttle_time_ms: Annotated[int, Int32("2+")] = 0
    topics: Annotated[list[OffsetForLeaderTopicResult], Array("0+")] = EMPTY
