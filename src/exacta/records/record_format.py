"""Kafka's record batches for the engine, which does not know their format."""

from collections.abc import Iterable, Sequence

from exacta.ports.record_format import Buffer, LogEntry
from exacta.protocol.kafka.batch_building import control_batch
from exacta.protocol.kafka.committed import AbortedTransactions
from exacta.protocol.kafka.records import MAGIC_OFFSET, assign_offset, move_batches, parse_batch_header, sound_batches
from exacta.records.keyed_records import unopened


class KafkaRecordFormat:
    """Implement `exacta.ports.record_format.RecordFormat` with record batches of magic 2."""

    def place(self, batch: Buffer, base_offset: int) -> Sequence[Buffer]:
        """See `RecordFormat.place`."""
        return assign_offset(memoryview(batch), base_offset)

    def move(self, batches: memoryview, first_offsets: Sequence[int], append_time_ms: int) -> None:
        """See `RecordFormat.move`."""
        move_batches(batches, first_offsets, append_time_ms)

    def sound(self, batches: Buffer, first_offsets: Sequence[int]) -> tuple[int, str]:
        """See `RecordFormat.sound`."""
        return sound_batches(batches, first_offsets)

    def entries(self, batches: Buffer, aborted: Iterable[tuple[int, int, int]]) -> list[LogEntry]:
        """See `RecordFormat.entries`. A batch that compaction has emptied has no data."""
        transactions, view = AbortedTransactions(aborted), memoryview(batches)
        found: list[LogEntry] = []
        start = 0
        while start < len(view):
            header = parse_batch_header(view, start)
            if not header.control and header.record_count and not transactions.has(header):
                found.append(unopened(view[start : start + header.size], header))
            start += header.size
        return found

    def magic(self, batch: Buffer) -> int:
        """See `RecordFormat.magic`."""
        return memoryview(batch)[MAGIC_OFFSET]

    def marker(
        self, base_offset: int, producer_id: int, producer_epoch: int, *, commit: bool, timestamp_ms: int
    ) -> bytes:
        """See `RecordFormat.marker`. There is one coordinator, hence one coordinator epoch."""
        return control_batch(
            base_offset, producer_id, producer_epoch, commit=commit, coordinator_epoch=0, timestamp_ms=timestamp_ms
        )
