"""ElectLeaders (key 43): elect leaders of partitions.

KIP-183; KIP-460 unclean elections.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int8, Int16, Int32, Message, Schema, String, Structure


class TopicPartitions(Structure, kw_only=True):
    topic: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = EMPTY


class ElectLeadersRequest(Message, kw_only=True):
    """Request of ElectLeaders."""

    SCHEMA: ClassVar[Schema] = Schema(key=43, versions="0-2", flexible="2+")

    election_type: Annotated[int, Int8("1+")] = 0
    topic_partitions: Annotated[list[TopicPartitions] | None, Array("0+", nullable="0+")] = EMPTY
    timeout_ms: Annotated[int, Int32("0+")] = 60000


class PartitionResult(Structure, kw_only=True):
    partition_id: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None


class ReplicaElectionResult(Structure, kw_only=True):
    topic: Annotated[str, String("0+")] = ""
    partition_result: Annotated[list[PartitionResult], Array("0+")] = EMPTY


class ElectLeadersResponse(Message, kw_only=True):
    """Response of ElectLeaders."""

    SCHEMA: ClassVar[Schema] = Schema(key=43, versions="0-2", flexible="2+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("1+")] = 0
    replica_election_results: Annotated[list[ReplicaElectionResult], Array("0+")] = EMPTY
