"""Ask (key 17792): a question about transactions, groups, subscriptions or brokers, and its answer, both as JSON.

Exacta's own; no Kafka has it. See docs/reference/ask.md.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import Bytes, Int16, Int32, Message, Schema


class AskRequest(Message, kw_only=True):
    """Request of Ask."""

    SCHEMA: ClassVar[Schema] = Schema(key=17792, versions="0", flexible="0+")

    question: Annotated[bytes, Bytes("0+")] = b""


class AskResponse(Message, kw_only=True):
    """Response of Ask."""

    SCHEMA: ClassVar[Schema] = Schema(key=17792, versions="0", flexible="0+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    answer: Annotated[bytes, Bytes("0+")] = b""
