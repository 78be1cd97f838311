"""Requests of every API of Kafka's protocol in every version, with values that the broker knows, and others."""

from typing import Any

from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.apis import API
from exacta.protocol.kafka.codec import encode_request
from exacta.protocol.kafka.schema import (
    Array,
    Bool,
    Bytes,
    FieldLayout,
    Fixed,
    Float64,
    Nested,
    RecordBytes,
    String,
    Structure,
    Uuid,
    Wire,
    layout,
)
from tests.fuzz.choices import Choices
from tests.kafka.wire import batch
from tests.protocol.kafka.strategies import BITS

REQUESTS = [
    (API[key].request, version)
    for key, handler in sorted(HANDLERS.items())
    for version in range(handler.versions[0], handler.versions[1] + 1)
]
"""Every request that is served: its class and its version."""

NAMES = (
    *("t", "u", "g", "x", "", "alice", "0", "1", "*", ".*", "(", "\n", "a,b", "é" * 63, "x" * 249, "y" * 5_000, "m"),
    *("__consumer_offsets", "consumer", "range", "User:alice", "127.0.0.1", "cleanup.policy", "retention.ms", "user"),
    *("message.max.bytes", "super.users", "authorizer.class.name", "transaction.version", "client-id", "SCRAM-SHA-256"),
)
"""Topics t and u, the group g and the transactional id x are there; others are words of some API."""
SMALL = (0, 1, 2, 3, -1, 5, 10, 100)
RECORDS = (
    b"",
    batch(b"v"),
    batch(b"v", b"w", producer_id=1, producer_epoch=0, base_sequence=0),
    batch(b"v", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True),
    batch(b"v")[:-1],
    batch(b"v") * 2,
    b"\0" * 61,
)


def request(choices: Choices, correlation_id: int, requests: Any = REQUESTS) -> bytes:
    """Return the frame of one of these requests; it can be decoded."""
    cls, version = choices.pick(requests)
    message = _structure(choices, cls, version)
    return b"".join(encode_request(message, version, correlation_id, choices.pick(("", "c", "client " * 30))))


def _structure(choices: Choices, structure: type[Structure], version: int) -> Any:
    of = layout(structure, version)
    return structure(**{each.name: _value(choices, each, version) for each in of.fields + of.tagged})


def _value(choices: Choices, field: FieldLayout, version: int) -> Any:
    wire = field.wire
    if field.nullable and choices.once_in(4):
        return None
    if isinstance(wire, Array):
        count = (1, 0, 2, 1, 3, 1, 1, 40)[choices.below(8)]
        if field.structure is None:
            assert wire.of is not None
            return [_scalar(choices, wire.of) for _ in range(count)]
        return [_structure(choices, field.structure, version) for _ in range(min(count, 3))]
    if isinstance(wire, Nested):
        if wire.tag is not None and not choices.once_in(2):
            return None
        assert field.structure is not None
        return _structure(choices, field.structure, version)
    if choices.once_in(5):
        return field.default if field.default is not None or field.nullable else _scalar(choices, type(wire))
    return _scalar(choices, type(wire))


def _scalar(choices: Choices, wire: type[Wire]) -> Any:
    if wire is Bool:
        return choices.once_in(2)
    if wire is Uuid:
        return choices.pick((bytes(16), b"\xff" * 16, bytes(range(16))))
    if wire is String:
        return choices.pick(NAMES)
    if wire is Bytes:
        return choices.pick((b"", b"b", bytes(20), b"\xff" * 100, choices.bytes(8)))
    if wire is RecordBytes:
        return choices.pick(RECORDS)
    if wire is Float64:
        return choices.pick((0.0, -1.0, 1e300, float("inf"), 5e-324))
    assert issubclass(wire, Fixed)
    bits = BITS[wire]
    largest = (1 << bits - 1) - 1
    if not choices.once_in(4):
        return choices.pick(SMALL)
    return choices.pick((largest, -largest - 1, largest - 1, largest // 2, 1 << bits // 2, 10_000 % (largest + 1)))
