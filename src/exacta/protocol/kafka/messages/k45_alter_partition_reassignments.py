"""AlterPartitionReassignments (key 45): move replicas to other brokers.

KIP-455; KIP-860 whether the number of replicas may change.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bool, Int16, Int32, Message, Schema, String, Structure


class ReassignablePartition(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    replicas: Annotated[list[int] | None, Array("0+", nullable="0+", of=Int32)] = None


class ReassignableTopic(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[ReassignablePartition], Array("0+")] = EMPTY


class AlterPartitionReassignmentsRequest(Message, kw_only=True):
    """Request of AlterPartitionReassignments."""

    SCHEMA: ClassVar[Schema] = Schema(key=45, versions="0-1", flexible="0+")

    timeout_ms: Annotated[int, Int32("0+")] = 60000
    allow_replication_factor_change: Annotated[bool, Bool("1+")] = True
    topics: Annotated[list[ReassignableTopic], Array("0+")] = EMPTY


class ReassignablePartitionResponse(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None


class ReassignableTopicResponse(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[ReassignablePartitionResponse], Array("0+")] = EMPTY


class AlterPartitionReassignmentsResponse(Message, kw_only=True):
    """Response of AlterPartitionReassignments."""

    SCHEMA: ClassVar[Schema] = Schema(key=45, versions="0-1", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    allow_replication_factor_change: Annotated[bool, Bool("1+")] = True
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    responses: Annotated[list[ReassignableTopicResponse], Array("0+")] = EMPTY
