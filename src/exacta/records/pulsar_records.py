"""The messages of Pulsar's entries by their keys, for compaction and for topics that refuse messages without a key.

Implements `keyed_records.KeyedRecords`. A message that compaction removes from a batch stays there as a *hole*: it is
marked as `compacted_out`, and has neither key nor payload, as Apache Pulsar's compaction leaves it (`RawBatchConverter`
there). So the others keep their places, hence their ids and offsets. Those that stay are copied byte for byte.

A tombstone is a message without a value: one that says so (`null_value`), or one whose payload is empty. Apache Pulsar
deletes the key of either, and its tables (TableView) take them so. Older clients can send no other tombstone. A Kafka
record with an empty value is none, since Kafka's clients tell null from empty: each message means what it means in
the protocol that wrote it.

Two kinds of entries stay whole: an encrypted batch, because its keys are inside, and a chunk of a large message,
because the other chunks would be worth nothing without it. The key of an encrypted message that is no batch is legible.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.batch_building import compacted
from exacta.protocol.kafka.records import BatchHeader
from exacta.protocol.pulsar.compression import EntryNotDecompressed, compress, decompress
from exacta.protocol.pulsar.entries import HOLE, Entry, build_body, partition_key, walked
from exacta.protocol.pulsar.errors import BrokenEntry
from exacta.protocol.pulsar.messages_pb2 import MessageMetadata
from exacta.records.pulsar_entries import entry_of


class Messages(NamedTuple):
    """The messages of an entry that are no holes, as columns."""

    indexes: list[int]
    keys: list[bytes | None]
    tombstones: list[bool]
    places: list[tuple[int, int]]
    """The places in `plain` at which each one begins and ends, with its metadata."""
    plain: bytes | memoryview
    """The payload of a batch, decompressed. It is empty for an entry that is no batch."""


def read_messages(entry: Entry, most_bytes: int) -> Messages:
    """Read the messages of an entry that was checked, or that lies in the log. Raises `BrokenEntry`, with the reason.

    At most `most_bytes` come out of a decompression.
    """
    if entry.is_chunk:
        raise BrokenEntry("the key of a part of a large message does not count")
    if not entry.is_batch:
        return Messages([0], [partition_key(entry.metadata)], [_is_tombstone(entry)], [(0, 0)], b"")
    if entry.is_encrypted:
        raise BrokenEntry("the keys of an encrypted batch cannot be seen")
    plain = _decompressed(entry, most_bytes)
    found = Messages([], [], [], [], plain)
    indexes, keys, tombstones, places, _ = found
    begin = 0
    for index, (metadata, _, start, end) in enumerate(walked(plain, entry.message_count)):
        if not metadata.compacted_out:
            indexes.append(index)
            keys.append(partition_key(metadata))
            tombstones.append(start == end or metadata.null_value)
            places.append((begin, end))
        begin = end
    return found


def _decompressed(entry: Entry, most_bytes: int) -> bytes | memoryview:
    if not entry.is_compressed:
        return entry.payload
    size = entry.metadata.uncompressed_size
    if size > most_bytes:
        raise BrokenEntry(f"a batch of {size} bytes, decompressed, of which at most {most_bytes} are read")
    try:
        return decompress(entry.metadata.compression, entry.payload, size)
    except EntryNotDecompressed as error:
        raise BrokenEntry(f"a batch that cannot be decompressed: {error}") from error


def _is_tombstone(entry: Entry) -> bool:
    """Return whether a message that is no batch has no value; what is compressed or encrypted says how large it was."""
    metadata = entry.metadata
    if metadata.null_value or not entry.payload:
        return True
    is_plain = not entry.is_compressed and not entry.is_encrypted
    return not is_plain and metadata.HasField("uncompressed_size") and not metadata.uncompressed_size


class PulsarRecords:
    """Implement `KeyedRecords` with the messages of an entry."""

    def __init__(self, header: BatchHeader, entry: Entry, found: Messages) -> None:
        self.keys, self.tombstones, self.offset_deltas = found.keys, found.tombstones, found.indexes
        self._header, self._entry, self._found = header, entry, found

    def rewritten(self, kept: Sequence[int], delete_horizon_ms: int | None) -> tuple[bytes, int]:
        """See `KeyedRecords.rewritten`. All messages of an entry have one time."""
        header, entry = self._header, self._entry
        body = entry.body if len(kept) == len(self.keys) else self._with_holes(kept)
        batch = compacted(header, bytes(body), len(kept), header.max_timestamp, delete_horizon_ms)
        return batch, header.max_timestamp

    def _with_holes(self, kept: Sequence[int]) -> bytes:
        metadata = MessageMetadata()
        metadata.CopyFrom(self._entry.metadata)
        payload = b"".join(self._pieces(kept))
        if metadata.HasField("uncompressed_size"):
            metadata.uncompressed_size = len(payload)
        return build_body(metadata, compress(metadata.compression, payload))

    def _pieces(self, kept: Sequence[int]) -> Iterator[Buffer]:
        found, at = self._found, 0
        view = memoryview(found.plain)
        for place in kept:
            index, (begin, end) = found.indexes[place], found.places[place]
            yield HOLE * (index - at)
            yield view[begin:end]
            at = index + 1
        yield HOLE * (self._entry.message_count - at)


def pulsar_records(batch: Buffer, header: BatchHeader, most_bytes: int) -> PulsarRecords | None:
    """Read the messages of a sound Pulsar batch; see `keyed_records.keyed_records`."""
    try:
        entry = entry_of(batch)
        if entry.message_count != header.last_offset_delta + 1:
            return None
        return PulsarRecords(header, entry, read_messages(entry, most_bytes))
    except BrokenEntry:
        return None
