"""Convert what a client of Pulsar's reads of a log that has batches of Kafka's among its own."""

from collections.abc import Sequence

from exacta.ports.record_format import LogEntry
from exacta.records.admission import MAX_DECOMPRESSED_BYTES
from exacta.records.conversion.into_pulsar import to_pulsar
from exacta.records.pulsar_entries import is_entry


def converted(entries: Sequence[LogEntry], *, singly: bool, largest_entry: int) -> list[LogEntry]:
    """Return the entries as Pulsar's clients read them, each of at most `largest_entry` bytes.

    A batch of another protocol's becomes one entry, or with `singly` an entry for each of its messages.
    """
    found: list[LogEntry] = []
    for entry in entries:
        if is_entry(entry.batch):
            found.append(entry)
        else:
            found += to_pulsar(entry, singly=singly, allowed_bytes=MAX_DECOMPRESSED_BYTES, largest_entry=largest_entry)
    return found
