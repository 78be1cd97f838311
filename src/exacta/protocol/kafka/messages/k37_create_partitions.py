"""CreatePartitions (key 37): add partitions to topics.

KIP-195.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Bool, Int16, Int32, Message, Schema, String, Structure


class CreatePartitionsAssignment(Structure, kw_only=True):
    broker_ids: Annotated[list[int], Array("0+", of=Int32)] = EMPTY


class CreatePartitionsTopic(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    count: Annotated[int, Int32("0+")] = 0
    assignments: Annotated[list[CreatePartitionsAssignment] | None, Array("0+", nullable="0+")] = None


class CreatePartitionsRequest(Message, kw_only=True):
    """Request of CreatePartitions."""

    SCHEMA: ClassVar[Schema] = Schema(key=37, versions="0-3", flexible="2+")

    topics: Annotated[list[CreatePartitionsTopic], Array("0+")] = EMPTY
    timeout_ms: Annotated[int, Int32("0+")] = 0
    validate_only: Annotated[bool, Bool("0+")] = False


class CreatePartitionsTopicResult(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None


class CreatePartitionsResponse(Message, kw_only=True):
    """Response of CreatePartitions."""

    SCHEMA: ClassVar[Schema] = Schema(key=37, versions="0-3", flexible="2+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    results: Annotated[list[CreatePartitionsTopicResult], Array("0+")] = EMPTY
