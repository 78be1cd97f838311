"""ListPartitionReassignments (key 46): list the replicas that are on the move.

KIP-455.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int16, Int32, Message, Schema, String, Structure


class ListPartitionReassignmentsTopics(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partition_indexes: Annotated[list[int], Array("0+", of=Int32)] = EMPTY


class ListPartitionReassignmentsRequest(Message, kw_only=True):
    """Request of ListPartitionReassignments."""

    SCHEMA: ClassVar[Schema] = Schema(key=46, versions="0", flexible="0+")

    timeout_ms: Annotated[int, Int32("0+")] = 60000
    topics: Annotated[list[ListPartitionReassignmentsTopics] | None, Array("0+", nullable="0+")] = EMPTY


class OngoingPartitionReassignment(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    replicas: Annotated[list[int], Array("0+", of=Int32)] = EMPTY
    adding_replicas: Annotated[list[int], Array("0+", of=Int32)] = EMPTY
    removing_replicas: Annotated[list[int], Array("0+", of=Int32)] = EMPTY


class OngoingTopicReassignment(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[OngoingPartitionReassignment], Array("0+")] = EMPTY


class ListPartitionReassignmentsResponse(Message, kw_only=True):
    """Response of ListPartitionReassignments."""

    SCHEMA: ClassVar[Schema] = Schema(key=46, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    topics: Annotated[list[OngoingTopicReassignment], Array("0+")] = EMPTY
