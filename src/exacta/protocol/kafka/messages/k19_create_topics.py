"""CreateTopics (key 19): create topics.

KIP-4; KIP-525 returned configuration; KIP-516 topic ids.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import (
    EMPTY,
    NO_UUID,
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    Schema,
    String,
    Structure,
    Uuid,
)


class CreatableReplicaAssignment(Structure, kw_only=True):
    partition_index: Annotated[int, Int32("0+")] = 0
    broker_ids: Annotated[list[int], Array("0+", of=Int32)] = EMPTY


class CreatableTopicConfig(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    value: Annotated[str | None, String("0+", nullable="0+")] = None


class CreatableTopic(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    num_partitions: Annotated[int, Int32("0+")] = 0
    replication_factor: Annotated[int, Int16("0+")] = 0
    assignments: Annotated[list[CreatableReplicaAssignment], Array("0+")] = EMPTY
    configs: Annotated[list[CreatableTopicConfig], Array("0+")] = EMPTY


class CreateTopicsRequest(Message, kw_only=True):
    """Request of CreateTopics."""

    SCHEMA: ClassVar[Schema] = Schema(key=19, versions="2-7", flexible="5+")

    topics: Annotated[list[CreatableTopic], Array("0+")] = EMPTY
    timeout_ms: Annotated[int, Int32("0+")] = 60000
    validate_only: Annotated[bool, Bool("1+")] = False


class CreatableTopicConfigs(Structure, kw_only=True):
    name: Annotated[str, String("5+")] = ""
    value: Annotated[str | None, String("5+", nullable="5+")] = None
    read_only: Annotated[bool, Bool("5+")] = False
    config_source: Annotated[int, Int8("5+")] = -1
    is_sensitive: Annotated[bool, Bool("5+")] = False


class CreatableTopicResult(Structure, kw_only=True):
    name: Annotated[str, String("0+")] = ""
    topic_id: Annotated[bytes, Uuid("7+")] = NO_UUID
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("1+", nullable="0+")] = None
    topic_config_error_code: Annotated[int, Int16("5+", tag=0)] = 0
    num_partitions: Annotated[int, Int32("5+")] = -1
    replication_factor: Annotated[int, Int16("5+")] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, Array("5+", nullable="5+")] = None


class CreateTopicsResponse(Message, kw_only=True):
    """Response of CreateTopics."""

    SCHEMA: ClassVar[Schema] = Schema(key=19, versions="2-7", flexible="5+")

    throttle_time_ms: Annotated[int, Int32("2+")] = 0
    topics: Annotated[list[CreatableTopicResult], Array("0+")] = EMPTY
