"""AlterClientQuotas (key 49): set and remove quotas of clients.

KIP-546.
"""

from typing import Annotated, ClassVar

from exacta.protocol.kafka.schema import (
    EMPTY,
    Array,
    Bool,
    Float64,
    Int16,
    Int32,
    Message,
    Schema,
    String,
    Structure,
)


class EntityData(Structure, kw_only=True):
    entity_type: Annotated[str, String("0+")] = ""
    entity_name: Annotated[str | None, String("0+", nullable="0+")] = ""


class OpData(Structure, kw_only=True):
    key: Annotated[str, String("0+")] = ""
    value: Annotated[float, Float64("0+")] = 0.0
    remove: Annotated[bool, Bool("0+")] = False


class EntryData(Structure, kw_only=True):
    entity: Annotated[list[EntityData], Array("0+")] = EMPTY
    ops: Annotated[list[OpData], Array("0+")] = EMPTY


class AlterClientQuotasRequest(Message, kw_only=True):
    """Request of AlterClientQuotas."""

    SCHEMA: ClassVar[Schema] = Schema(key=49, versions="0-1", flexible="1+")

    entries: Annotated[list[EntryData], Array("0+")] = EMPTY
    validate_only: Annotated[bool, Bool("0+")] = False


class AlteredEntryData(Structure, kw_only=True):
    error_code: Annotated[int, Int16("0+")] = 0
    error_message: Annotated[str | None, String("0+", nullable="0+")] = ""
    entity: Annotated[list[EntityData], Array("0+")] = EMPTY


class AlterClientQuotasResponse(Message, kw_only=True):
    """Response of AlterClientQuotas."""

    SCHEMA: ClassVar[Schema] = Schema(key=49, versions="0-1", flexible="1+")

    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    entries: Annotated[list[AlteredEntryData], Array("0+")] = EMPTY
