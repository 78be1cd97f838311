"""Two independent codecs, kafka-python's and kio's, made comparable with ours.

Both read and write objects of their own. `to_kafka_python` builds such an object from one of our messages;
`plain` reduces an object of any of the three to dicts, lists and scalars of the fields that a version has.
"""

import importlib
import io
import sys
import warnings
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.schema import FieldLayout, Int32, Message, Structure, Uuid, layout
from tests.protocol.kafka.strategies import Choose

KAFKA_PYTHON_MODULES = (
    "kafka.protocol.producer",
    "kafka.protocol.consumer",
    "kafka.protocol.metadata",
    "kafka.protocol.admin",
    "kafka.protocol.sasl",
)

OTHER_NAMES = {
    "enable_2pc": ("enable2_pc",),
    "cluster_authorized_operations": ("authorized_operations",),
    "topic_authorized_operations": ("authorized_operations",),
}
"""Fields that an oracle spells in another way."""

OTHER_STRUCTURES = {"AlteredEntryData": "EntryData"}
"""Structures that kio names in another way: Kafka has one name for that of the request and that of the answer."""

LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, where Python's dates end."""

BIT_FIELDS = ("authorized_operations", "cluster_authorized_operations")
"""What kafka-python takes for a set of bits, by its own names; under others the same is a number."""

KIO_VALUES = {
    "error_code": st.sampled_from(list(map(int, ErrorCode))),
    "datetime_i64": st.integers(0, LATEST_MS),
    "timedelta_i64": st.integers(0, LATEST_MS),
}
"""Types for which kio accepts fewer values than the wire can carry."""


def their_name(theirs: Any, name: str) -> str:
    """Find the oracle's spelling of a field in one of its objects or classes."""
    names = (name, name.removesuffix("_ms"), *OTHER_NAMES.get(name, ()))
    return next(candidate for candidate in names if hasattr(theirs, candidate))


@cache
def kafka_python_class(cls: type[Message]) -> Any:
    """Return kafka-python's class of the same name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it reads its schemas by a deprecated function
        modules = [importlib.import_module(module) for module in KAFKA_PYTHON_MODULES]
    return next(getattr(module, cls.__name__) for module in modules if hasattr(module, cls.__name__))


def to_kafka_python(message: Structure, theirs: Any, version: int) -> Any:
    """Build kafka-python's twin of `message`."""
    of = layout(type(message), version)
    values = {}
    for field in of.fields + of.tagged:
        value = getattr(message, field.name)
        if field.wire.tag is not None and value == field.default:
            continue
        fields = theirs._struct.fields
        name = next(name for name in (field.name, *OTHER_NAMES.get(field.name, ())) if name in fields)
        if field.structure is not None and value is not None:
            element = fields[name].data_class
            if isinstance(value, list):
                value = [to_kafka_python(item, element, version) for item in value]
            else:
                value = to_kafka_python(value, element, version)
        elif isinstance(field.wire, Uuid):
            value = UUID(bytes=value)
        elif is_bit_field(field) and name in BIT_FIELDS:
            value = {bit for bit in range(32) if value >> bit & 1}
        values[name] = value
    return theirs(version=version, **values)


def is_bit_field(field: FieldLayout) -> bool:
    """Say whether the number is a set of bits."""
    return isinstance(field.wire, Int32) and field.name.endswith("authorized_operations")


def kafka_python_values(structure: type[Structure], field: FieldLayout) -> st.SearchStrategy | None:
    """Keep generated values within those that kafka-python hands out unchanged."""
    if is_bit_field(field):
        return st.integers(-(1 << 31) + 1, (1 << 31) - 1)  # it reads the least number as None
    if structure.__name__ == "ApiVersionsResponse" and field.name == "error_code":
        return st.just(0)  # it reads any other response in version 0, as a client should that asked for too much
    return None


@cache
def kio_class(cls: type[Message], version: int) -> Any:
    """Return kio's class for the same message in the same version."""
    load = load_request_schema if cls.__name__.endswith("Request") else load_response_schema
    return load(cls.SCHEMA.key, version)


def kio_values(cls: type[Message], version: int) -> Choose:
    """Return what keeps generated values of a message within those that kio accepts."""
    module = sys.modules[kio_class(cls, version).__module__]

    def choose(structure: type[Structure], field: FieldLayout) -> st.SearchStrategy | None:
        theirs = getattr(module, OTHER_STRUCTURES.get(structure.__name__, structure.__name__))
        metadata = theirs.__dataclass_fields__[their_name(theirs, field.name)].metadata
        return KIO_VALUES.get(metadata.get("kafka_type"))

    return choose


def read_kio(cls: type[Message], version: int, encoded: bytes) -> Any:
    """Decode with kio; every byte must be used."""
    entity, size = entity_reader(kio_class(cls, version))(encoded, 0)
    assert size == len(encoded)
    return entity


def write_kio(entity: Any) -> bytes:
    """Encode with kio."""
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def plain(message: Any, structure: type[Structure], version: int) -> dict[str, Any]:
    """Return the fields that `structure` has in `version`, from an object of any of the codecs."""
    of = layout(structure, version)
    result = {}
    for field in of.fields + of.tagged:
        value = getattr(message, their_name(message, field.name))
        if field.structure is not None and value is not None:
            if isinstance(value, (list, tuple)):
                value = [plain(item, field.structure, version) for item in value]
            else:
                value = plain(value, field.structure, version)
        default = plain(field.structure(), field.structure, version) if field.structure is not None else None
        # An absent tagged structure is None with us and the default with kio.
        result[field.name] = None if value is None or (default and value == default) else _scalar(value)
    return result


def _scalar(value: Any) -> Any:
    match value:
        case list() | tuple():
            return [_scalar(item) for item in value]
        case UUID():
            return value.bytes
        case memoryview():
            return bytes(value)
        case timedelta():
            return value // timedelta(milliseconds=1)
        case datetime():
            return round(value.timestamp() * 1000)
        case bool() | dict():
            return value
        case set():  # kafka-python's bit fields
            return sum(1 << bit if bit < 31 else -(1 << bit) for bit in value)
        case int():
            return int(value)
        case str():
            return str(value)
    return value
