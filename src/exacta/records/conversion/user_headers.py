"""Headers of Kafka's users as Pulsar properties, and back.

A property is text, and Pulsar's clients show one value for a name. Where headers cannot be shown so, one more property
holds all headers of the record, as Kafka encodes them (`names.KAFKA_HEADERS`). On the way back that property alone says
which headers there are.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence

from exacta.protocol.kafka.record_keys import UnreadableRecords
from exacta.protocol.kafka.record_reading import read_headers
from exacta.protocol.kafka.record_writing import Header, encoded_headers
from exacta.protocol.pulsar.messages_pb2 import Property
from exacta.records.conversion.names import KAFKA_HEADERS


def is_text(data: bytes) -> bool:
    """Return whether the bytes are UTF-8."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def headers_of(properties: Iterable[Property]) -> list[Header]:
    """Return the headers that the properties of a message stand for."""
    headers: list[Header] = []
    for each in properties:
        name, value = each.key, each.value
        if name == KAFKA_HEADERS:
            restored = _restored(value)
            if restored is not None:
                return restored
        headers.append((name if is_text(name) else _as_text(name), value))
    return headers


def properties_of(headers: Sequence[Header]) -> list[tuple[bytes, bytes]]:
    """Return the properties that stand for the headers of a record, in order."""
    if not headers:
        return []
    properties = [(name, value) for name, value in headers if value is not None and is_text(value) and is_text(name)]
    found = {name for name, _ in properties}
    if len(found) != len(headers) or KAFKA_HEADERS in found:
        properties = [each for each in properties if each[0] != KAFKA_HEADERS]
        properties.append((KAFKA_HEADERS, base64.b64encode(encoded_headers(headers))))
    return properties


def _restored(value: bytes) -> list[Header] | None:
    """Return the headers that `properties_of` has put into a property; None if the property is a user's own."""
    try:
        encoded = base64.b64decode(value, validate=True)
        headers, end = read_headers(encoded, 0, len(encoded), len(encoded))
    except (binascii.Error, UnreadableRecords, IndexError):
        return None
    return list(headers) if end == len(encoded) else None


def _as_text(name: bytes) -> bytes:
    """Return a name that any Kafka consumer can read, not longer than before: "?" stands for what is no text."""
    return name.decode("utf-8", "surrogateescape").encode("utf-8", "replace")
