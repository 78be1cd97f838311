"""DeleteRecords (key 21): delete records from the beginning of partitions.

KIP-107.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int16, Int32, Int64, Message, Schema, String, Structure


class DeleteRecordsPartition(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    offset: Annotated[int, Int64("0+")] = 0


class DeleteRecordsTopic(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[DeleteRecordsPartition], Array("0+")] = EMPTY


class DeleteRecordsRequest(Message, kw_only=True):
    """Request of DeleteRecords."""

    SCHEMA: ClassVar[Schema] = Schema(key=21, versions="0-2", flexible="2+")

    topics: Annotated[list[DeleteRecordsTopic], Array("0+")] = EMPTY
    timeout_ms: Annotated[int, Int32("0+")] = 0


class DeleteRecordsPartitionResult(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    low_watermark: Annotated[int, Int64("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0


class DeleteRecordsTopicResult(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[DeleteRecordsPartitionResult], Array("0+")] = EMPTY


class DeleteRecordsResponse(Message, kw_only=True):
    """Response of DeleteRecords."""

    SCHEMA: ClassVar[Schema] = Schema(key=21, versions="0-2", flexible="2+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    topics: Annotated[list[DeleteRecordsTopicResult], Array("0+")] = EMPTY
