"""Hypothesis strategies for messages: any value that a (class, version) can carry on the wire."""

from collections.abc import Callable
from functools import cache

from hypothesis import strategies as st

from exacta.protocol.kafka.apis import API
from exacta.protocol.kafka.schema import (
    Array,
    Bool,
    Bytes,
    FieldLayout,
    Fixed,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Nested,
    RecordBytes,
    String,
    Structure,
    Uuid,
    Wire,
    layout,
)

BITS = {Int8: 8, Int16: 16, Int32: 32, Int64: 64}

Choose = Callable[[type[Structure], FieldLayout], st.SearchStrategy | None]
"""Replaces the strategy of a field; None leaves it."""

MESSAGES: list[tuple[type[Message], int]] = [
    (cls, version) for api in API.values() for cls in (api.request, api.response) for version in cls.SCHEMA.versions
]
"""Every (class, version) that the codec knows."""


def message_id(parameter: object) -> str:
    """Name a parameter of a test in its id."""
    return parameter.__name__ if isinstance(parameter, type) else f"v{parameter}"


def any_value(structure: type[Structure], field: FieldLayout) -> None:
    """Leave the strategy of every field."""


@cache
def messages(structure: type[Structure], version: int, choose: Choose = any_value) -> st.SearchStrategy:
    """Generate `structure` with any values in the fields that `version` has, and defaults in the others."""
    of = layout(structure, version)
    values = {}
    for field in of.fields + of.tagged:
        chosen = choose(structure, field)
        values[field.name] = _values(field, version, choose) if chosen is None else chosen
    return st.builds(structure, **values)


def _values(field: FieldLayout, version: int, choose: Choose) -> st.SearchStrategy:
    if isinstance(field.wire, Array):
        if field.wire.of is None:
            elements = messages(field.structure, version, choose)
        else:
            elements = _scalars(field.wire.of)
        # Seldom more than a one-byte length prefix can say: such arrays are slow to generate.
        values = st.lists(elements, max_size=3)
        if field.wire.of in (Int32, Int64):
            values |= st.integers(17, 200).map(lambda length: list(range(length)))
    elif isinstance(field.wire, Nested):
        values = messages(field.structure, version, choose)
        if field.wire.tag is not None:
            return st.none() | values
    else:
        values = _scalars(type(field.wire))
    return st.none() | values if field.nullable else values


def _scalars(wire: type[Wire]) -> st.SearchStrategy:
    if wire is Bool:
        return st.booleans()
    if wire is Uuid:
        return st.binary(min_size=16, max_size=16)
    if wire is String:
        return st.text(max_size=5) | st.sampled_from(["é" * 63, "x" * 126, "x" * 127, "x" * 128, "x" * 0x7FFF])
    if wire in (Bytes, RecordBytes):
        return st.binary(max_size=5) | st.sampled_from([b"y" * 126, b"y" * 127, b"y" * 20000])
    if wire is Float64:
        return st.floats(allow_nan=False)
    assert issubclass(wire, Fixed)
    bound = 1 << BITS[wire] - 1
    return st.integers(-bound, bound - 1)
