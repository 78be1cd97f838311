"""A bound of what a Pulsar entry becomes: conversions are bounded by what entries say of themselves."""

from exacta.core.ids import Body
from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.record_writing import encoded_headers
from exacta.protocol.kafka.records import HEADER_SIZE
from exacta.protocol.pulsar.entries import parse_body
from exacta.protocol.pulsar.errors import BrokenEntry
from exacta.records.conversion.fields import entry_headers
from exacta.records.conversion.into_kafka import MOST_ADDED_TO_EACH
from exacta.records.conversion.opening import header_of

MOST_ADDED_IF_OPAQUE = 512


def kafka_bound(batch: Buffer, *, allowed_bytes: int | None = None) -> int:
    """Return a bound, in bytes, of what `to_kafka` makes of the batch, from the metadata of the entry alone.

    With the `allowed_bytes` that `to_kafka` is given, an entry that says that it has more counts as opaque.
    """
    view = memoryview(batch)
    if header_of(view, Body.PULSAR) is None:
        return len(view)
    try:
        entry = parse_body(view[HEADER_SIZE:])
    except BrokenEntry:
        return len(view) + MOST_ADDED_IF_OPAQUE
    metadata, size_of_metadata = entry.metadata, len(entry.written_metadata)
    common = len(encoded_headers(entry_headers(metadata)))
    opaque = HEADER_SIZE + len(entry.payload) + 3 * size_of_metadata + common + MOST_ADDED_IF_OPAQUE
    plain = metadata.uncompressed_size if entry.is_compressed else len(entry.payload)
    added = entry.message_count * (MOST_ADDED_TO_EACH + common)
    if allowed_bytes is not None and (added > allowed_bytes or (entry.is_compressed and plain > allowed_bytes)):
        return opaque
    return max(opaque, HEADER_SIZE + plain + size_of_metadata + added)
