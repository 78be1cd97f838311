"""DeleteTopics (key 20): delete topics.

KIP-4; KIP-516 topic ids; KIP-599 error message.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, NO_UUID, Array, Int16, Int32, Message, Schema, String, Structure, Uuid


class DeleteTopicState(Structure, kw_only=True):
    name: Annotated[str | None, String("6+", nullable="6+")] = None
    topic_id: Annotated[bytes, Uuid("6+")] = NO_UUID


class DeleteTopicsRequest(Message, kw_only=True):
    """Request of DeleteTopics."""

    SCHEMA: ClassVar[Schema] = Schema(key=20, versions="1-6", flexible="4+")

    topics: Annotated[list[DeleteTopicState], Array("6+")] = EMPTY
    topic_names: Annotated[list[str], Array("0-5", of=String)] = EMPTY
    timeout_ms: Annotated[int, Int32("0+")] = 0


class DeletableTopicResult(Structure, kw_only=True):
    name: Annotated[str | None, String("0+", nullable="6+")] = ""
    topic_id: Annotated[bytes, Uuid("6+")] = NO_UUID
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("5+", nullable="5+")] = None


class DeleteTopicsResponse(Message, kw_only=True):
    """Response of DeleteTopics."""

    SCHEMA: ClassVar[Schema] = Schema(key=20, versions="1-6", flexible="4+")

    throttle_time_ms: Annotated[int, Int32("1+")] = 0
    responses: Annotated[list[DeletableTopicResult], Array("0+")] = EMPTY
