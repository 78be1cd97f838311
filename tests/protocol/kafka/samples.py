"""One fixed message for every (class, version), in which every field is there and every array has two elements."""

from typing import Any

from exacta.protocol.kafka.codec import encode
from exacta.protocol.kafka.schema import (
    Array,
    Bool,
    Bytes,
    FieldLayout,
    Message,
    Nested,
    RecordBytes,
    String,
    Structure,
    Uuid,
    Wire,
    layout,
)
from tests.protocol.kafka.strategies import MESSAGES


def sample(structure: type[Structure], version: int) -> Any:
    """Build the sample of `structure`."""
    of = layout(structure, version)
    return structure(**{field.name: _value(field, version) for field in of.fields + of.tagged})


def _value(field: FieldLayout, version: int) -> Any:
    if isinstance(field.wire, Nested):
        assert field.structure is not None
        return sample(field.structure, version)
    if isinstance(field.wire, Array):
        if field.structure is not None:
            return [sample(field.structure, version)] * 2
        assert field.wire.of is not None
        return [_scalar(field.wire.of)] * 2
    return _scalar(type(field.wire))


def _scalar(wire: type[Wire]) -> Any:
    values = {Bool: True, Uuid: bytes(range(16)), String: "abcé", Bytes: b"bytes", RecordBytes: b"records"}
    return values.get(wire, 3)


SAMPLES: dict[tuple[type[Message], int], bytes] = {
    (cls, version): b"".join(encode(sample(cls, version), version)) for cls, version in MESSAGES
}
"""The encoded samples."""
