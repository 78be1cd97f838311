"""DescribeProducers (key 61): active producers of partitions.

KIP-664.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int16, Int32, Int64, Message, Schema, String, Structure


class TopicRequest(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partition_indexes: Annotated[list[int], Array("0+", of=Int32)] = EMPTY


class DescribeProducersRequest(Message, kw_only=True):
    """Request of DescribeProducers."""

    SCHEMA: ClassVar[Schema] = Schema(key=61, versions="0", flexible="0+")

    topics: Annotated[list[TopicRequest], Array("0+")] = EMPTY


class ProducerState(Structure, kw_only=True):
    producer_id: Annotated[int, Int64("0+")] = 0
    producer_epoch: Annotated[int, Int32("0+")] = 0
    last_sequence: Annotated[int, Int32("0+")] = -1
    last_timestamp: Annotated[int, Int64("0+")] = -1
    coordinator_epoch: Annotated[int, Int32("0+")] = 0
    current_txn_start_offset: Annotated[int, Int64("0+")] = -1


class PartitionResponse(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    active_producers: Annotated[list[ProducerState], Array("0+")] = EMPTY


class TopicResponse(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[PartitionResponse], Array("0+")] = EMPTY


class DescribeProducersResponse(Message, kw_only=True):
    """Response of DescribeProducers."""

    SCHEMA: ClassVar[Schema] = Schema(key=61, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    topics: Annotated[list[TopicResponse], Array("0+")] = EMPTY
