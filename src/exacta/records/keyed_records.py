"""The records of one batch by their keys, whatever encodes them: compaction reads each body of the log by this.

Owns the interface, its implementation for Kafka's record batches, and the choice among the bodies. Pulsar's entries are
read in `pulsar_records.py`, which is imported only where such a batch is met, because it loads `protobuf`. Where that
is not installed, no Pulsar batch can be read.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Final, Protocol

from exacta.core.ids import Body
from exacta.ports.record_format import Buffer, LogEntry
from exacta.protocol.kafka.record_edits import with_records
from exacta.protocol.kafka.record_keys import RecordKeys, record_keys
from exacta.protocol.kafka.records import MAGIC, BatchHeader, CorruptBatch, opened, parse_batch_header

MOST_OPENED_BYTES: Final = 256 << 20
"""An entry that is larger than this once it is decompressed is not opened for a reader. Compaction leaves it whole."""


class KeyedRecords(Protocol):
    """The records that a batch still has, as columns: one element for each record, in order."""

    @property
    def keys(self) -> Sequence[bytes | None]:
        """The keys; None for a record that has none."""

    @property
    def tombstones(self) -> Sequence[bool]:
        """True for each record that says that its key is gone."""

    @property
    def offset_deltas(self) -> Sequence[int]:
        """The distances of the records' offsets from the first one of the batch."""

    def rewritten(self, kept: Sequence[int], delete_horizon_ms: int | None) -> tuple[bytes, int]:
        """Build the batch of the records at these places, at least one; return it and the highest of their times.

        `delete_horizon_ms` is a new one, and otherwise None.
        """


class KafkaRecords:
    """Implement `KeyedRecords` with the records of a Kafka batch, decompressed."""

    def __init__(self, header: BatchHeader, plain: bytes, found: RecordKeys) -> None:
        self.keys, self.tombstones, self.offset_deltas = found.keys, found.tombstones, found.offset_deltas
        self._header, self._plain, self._found = header, plain, found

    def rewritten(self, kept: Sequence[int], delete_horizon_ms: int | None) -> tuple[bytes, int]:
        """See `KeyedRecords.rewritten`."""
        return with_records(self._header, self._plain, self._found, kept, delete_horizon_ms)


def keyed_records(batch: Buffer, header: BatchHeader, most_bytes: int) -> KeyedRecords | None:
    """Read the records of a sound batch; None if they cannot be read, or are more than `most_bytes` decompressed."""
    read = _READERS.get(header.magic)
    return None if read is None else read(batch, header, most_bytes)


def unopened(batch: Buffer, header: BatchHeader) -> LogEntry:
    """Return a batch as an entry; its gaps are not known yet if it has some (`gaps_of`)."""
    count = header.last_offset_delta + 1
    has_gaps = header.record_count < count and header.magic != MAGIC
    return LogEntry(header.base_offset, count, batch, None if has_gaps else ())


def gaps_of(batch: Buffer) -> tuple[tuple[int, int], ...]:
    """Return the runs of offsets of a Pulsar entry from which compaction has removed the messages.

    The entry is opened for that only if something was removed. A Kafka batch has none here: its conversion finds
    them (`records/conversion/into_pulsar.py`).
    """
    header = parse_batch_header(batch)
    count = header.last_offset_delta + 1
    if header.magic == MAGIC or not 0 < header.record_count < count:
        return ()
    found = keyed_records(batch, header, MOST_OPENED_BYTES)
    if found is None:
        return ()
    return gaps_between(found.offset_deltas, header.base_offset, count)


def gaps_between(offset_deltas: Iterable[int], base_offset: int, count: int) -> tuple[tuple[int, int], ...]:
    """Return the runs of the offsets of a batch, which has `count` of them, that have no record."""
    ends = [-1, *offset_deltas, count]
    return tuple(
        (base_offset + before + 1, base_offset + after - 1) for before, after in pairwise(ends) if after - before > 1
    )


def _of_kafka(batch: Buffer, header: BatchHeader, most_bytes: int) -> KeyedRecords | None:
    try:
        plain = opened(batch, header, most_bytes)
        return KafkaRecords(header, plain, record_keys(plain, header.record_count, header.last_offset_delta))
    except CorruptBatch:
        return None


def _of_pulsar(batch: Buffer, header: BatchHeader, most_bytes: int) -> KeyedRecords | None:
    read = _pulsars_reader()
    return None if read is None else read(batch, header, most_bytes)


_Reader = Callable[[Buffer, BatchHeader, int], KeyedRecords | None]


@cache
def _pulsars_reader() -> _Reader | None:
    try:
        from exacta.records.pulsar_records import pulsar_records
    except ImportError:
        return None
    return pulsar_records


_READERS: Final[dict[int, _Reader]] = {MAGIC: _of_kafka, Body.PULSAR: _of_pulsar}
