"""DeleteGroups (key 42): delete empty groups.

KIP-229.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import EMPTY, Array, Int16, Int32, Message, Schema, String, Structure


class DeleteGroupsRequest(Message, kw_only=True):
    """Request of DeleteGroups."""

    SCHEMA: ClassVar[Schema] = Schema(key=42, versions="0-3", flexible="2+")

    groups_names: Annotated[list[str], Array("0+", of=String)] = EMPTY


class DeletableGroupResult(Structure, kw_only=True):
    group_id: Annotated[str, String("0+")] = ""
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("3+", nullable="3+")] = None


class DeleteGroupsResponse(Message, kw_only=True):
    """Response of DeleteGroups."""

    SCHEMA: ClassVar[Schema] = Schema(key=42, versions="0-3", flexible="2+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    results: Annotated[list[DeletableGroupResult], Array("0+")] = EMPTY
