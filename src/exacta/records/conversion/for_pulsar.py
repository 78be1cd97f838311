"""Convert what a Pulsar client reads of a log that also has Kafka batches, or has been compacted."""

from collections.abc import Sequence
from typing import Final

from exacta.ports.record_format import Converted, LogEntry, Wanted
from exacta.protocol.kafka.compression import NotDecompressed, decompress
from exacta.protocol.kafka.records import HEADER_SIZE, parse_batch_header
from exacta.protocol.pulsar.errors import BrokenEntry
from exacta.records.admission import MAX_DECOMPRESSED_BYTES
from exacta.records.conversion.into_pulsar import to_pulsar
from exacta.records.keyed_records import gaps_of
from exacta.records.pulsar_entries import entry_of, is_entry

_ENTRY_BYTES: Final = 256


def is_foreign(entry: LogEntry) -> bool:
    """Return whether an entry is a batch of another protocol's."""
    return not is_entry(entry.batch)


def is_to_be_opened(entry: LogEntry) -> bool:
    """Return whether an entry cannot be read as it is: it is converted, or its gaps are not known yet."""
    return entry.gaps is None or is_foreign(entry)


def plain_bytes(entry: LogEntry, most_bytes: int) -> int:
    """Return how many bytes are to be read of an entry, decompressed; more than `most_bytes` stand for any number.

    A few bytes may be made of millions, so that a small Kafka batch is decompressed as far as that to find out. An
    Pulsar entry says it itself, and has no more, or is not opened.
    """
    if len(entry.batch) > most_bytes:
        return len(entry.batch)
    if not is_foreign(entry):
        return _said_bytes(entry)
    header = parse_batch_header(entry.batch)
    try:
        return HEADER_SIZE + len(decompress(header.codec, memoryview(entry.batch)[HEADER_SIZE:], most_bytes))
    except NotDecompressed:
        return most_bytes + 1


def _said_bytes(entry: LogEntry) -> int:
    try:
        found = entry_of(entry.batch)
    except BrokenEntry:
        return len(entry.batch)
    return len(entry.batch) + (found.metadata.uncompressed_size if found.is_compressed else 0)


def converted(entries: Sequence[LogEntry], wanted: Wanted, *, largest_entry: int) -> Converted:
    """Return Pulsar entries of at most `largest_entry` bytes, as far as they are wanted."""
    found: list[LogEntry] = []
    size = 0
    for entry in entries:
        if not is_foreign(entry):
            made = [entry if entry.gaps is not None else entry._replace(gaps=gaps_of(entry.batch))]
        else:
            messages = wanted.messages if wanted.singly else None
            made = to_pulsar(
                entry,
                singly=wanted.singly,
                allowed_bytes=MAX_DECOMPRESSED_BYTES,
                largest_entry=largest_entry,
                messages=messages,
            )
        made_bytes = sum(map(_cost, made))
        if size + made_bytes > wanted.most_bytes:
            if found:
                return Converted(found, entry.base_offset)
            fitting = _fitting(made, wanted.most_bytes)
            if fitting < len(made):
                return Converted(made[:fitting], made[fitting].base_offset)
        size += made_bytes
        found += made
        if wanted.singly and is_foreign(entry) and entry.base_offset + entry.offset_count > wanted.end:
            return Converted(found, wanted.end)
    return Converted(found)


def _cost(entry: LogEntry) -> int:
    """Return the bytes of an entry, and what it is to choose a consumer for it and to keep it, in bytes."""
    return len(entry.batch) + _ENTRY_BYTES


def _fitting(entries: Sequence[LogEntry], most_bytes: int) -> int:
    """Return how many of the first entries have no more bytes together; at least one."""
    for place, entry in enumerate(entries):
        most_bytes -= _cost(entry)
        if most_bytes < 0:
            return max(place, 1)
    return len(entries)
