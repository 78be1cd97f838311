"""Convert what a client of Pulsar's reads of a log that has batches of Kafka's among its own."""

from collections.abc import Sequence

from exacta.core.ids import Body
from exacta.ports.record_format import LogEntry
from exacta.protocol.kafka.records import MAGIC_OFFSET
from exacta.records.admission import MAX_DECOMPRESSED_BYTES
from exacta.records.conversion.into_pulsar import to_pulsar


def is_foreign(entry: LogEntry) -> bool:
    """Return whether an entry is a batch of another protocol's."""
    return memoryview(entry.batch)[MAGIC_OFFSET] != Body.PULSAR


def converted(entries: Sequence[LogEntry], *, singly: bool, largest_entry: int) -> list[LogEntry]:
    """Return entries of Pulsar's, for all or for each message of a foreign one (`singly`), of at most so many bytes."""
    found: list[LogEntry] = []
    for entry in entries:
        if is_foreign(entry):
            found += to_pulsar(entry, singly=singly, allowed_bytes=MAX_DECOMPRESSED_BYTES, largest_entry=largest_entry)
        else:
            found.append(entry)
    return found
