"""WriteTxnMarkers (key 27): write commit and abort markers into partitions.

KIP-98; KIP-1228 transaction version.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import (
    EMPTY,
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Schema,
    String,
    Structure,
)


class WritableTxnMarkerTopic(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partition_indexes: Annotated[list[int], Array("0+", of=Int32)] = EMPTY


class WritableTxnMarker(Structure, kw_only=True):
    producer_id: Annotated[int, Int64("0+")] = 0
    producer_epoch: Annotated[int, Int16("0+")] = 0
    transaction_result: Annotated[bool, Bool("0+")] = False
    topics: Annotated[list[WritableTxnMarkerTopic], Array("0+")] = EMPTY
    coordinator_epoch: Annotated[int, Int32("0+")] = 0
    transaction_version: Annotated[int, Int8("2+")] = 0


class WriteTxnMarkersRequest(Message, kw_only=True):
    """Request of WriteTxnMarkers."""

    SCHEMA: ClassVar[Schema] = Schema(key=27, versions="1-2", flexible="1+")

    markers: Annotated[list[WritableTxnMarker], Array("0+")] = EMPTY


class WritableTxnMarkerPartitionResult(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0


class WritableTxnMarkerTopicResult(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[WritableTxnMarkerPartitionResult], Array("0+")] = EMPTY


class WritableTxnMarkerResult(Structure, kw_only=True):
    producer_id: Annotated[int, Int64("0+")] = 0
    topics: Annotated[list[WritableTxnMarkerTopicResult], Array("0+")] = EMPTY


class WriteTxnMarkersResponse(Message, kw_only=True):
    """Response of WriteTxnMarkers."""

    SCHEMA: ClassVar[Schema] = Schema(key=27, versions="1-2", flexible="1+")

    markers: Annotated[list[WritableTxnMarkerResult], Array("0+")] = EMPTY
