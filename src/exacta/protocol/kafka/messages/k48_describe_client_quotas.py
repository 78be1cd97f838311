"""DescribeClientQuotas (key 48): list quotas of clients.

KIP-546.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import (
    EMPTY,
    Array,
    Bool,
    Float64,
    Int8,
    Int16,
    Int32,
    Message,
    Schema,
    String,
    Structure,
)


class ComponentData(Structure, kw_only=True):
    entity_type: Annotated[str, String("0+")] = ""
    match_type: Annotated[int, Int8("0+")] = 0
    match: Annotated[str | None, String("0+", nullable="0+")] = ""


class DescribeClientQuotasRequest(Message, kw_only=True):
    """Request of DescribeClientQuotas."""

    SCHEMA: ClassVar[Schema] = Schema(key=48, versions="0-1", flexible="1+")

    components: Annotated[list[ComponentData], Array("0+")] = EMPTY
    strict: Annotated[bool, Bool("0+")] = False


class EntityData(Structure, kw_only=True):
    entity_type: Annotated[str, String("0+")] = ""
    entity_name: Annotated[str | None, String("0+", nullable="0+")] = ""


class ValueData(Structure, kw_only=True):
    key: Annotated[str, String("0+")] = ""
    value: Annotated[float, Float64("0+")] = 0.0


class EntryData(Structure, kw_only=True):
    entity: Annotated[list[EntityData], Array("0+")] = EMPTY
    values: Annotated[list[ValueData], Array("0+")] = EMPTY


class DescribeClientQuotasResponse(Message, kw_only=True):
    """Response of DescribeClientQuotas."""

    SCHEMA: ClassVar[Schema] = Schema(key=48, versions="0-1", flexible="1+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = None
    entries: Annotated[list[EntryData] | None, Array("0+", nullable="0+")] = EMPTY
