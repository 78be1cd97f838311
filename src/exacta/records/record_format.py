"""Kafka's record batches for the engine, which does not know their format."""

from collections.abc import Sequence

from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.batch_building import control_batch
from exacta.protocol.kafka.records import assign_offset, sound_batches


class KafkaRecordFormat:
    """Implement `exacta.ports.record_format.RecordFormat` with record batches of magic 2."""

    def place(self, batch: Buffer, base_offset: int) -> Sequence[Buffer]:
        """See `RecordFormat.place`."""
        return assign_offset(memoryview(batch), base_offset)

    def sound(self, batches: Buffer, first_offsets: Sequence[int]) -> tuple[int, str]:
        """See `RecordFormat.sound`."""
        return sound_batches(batches, first_offsets)

    def marker(
        self, base_offset: int, producer_id: int, producer_epoch: int, *, commit: bool, timestamp_ms: int
    ) -> bytes:
        """See `RecordFormat.marker`. There is one coordinator, hence one coordinator epoch."""
        return control_batch(
            base_offset, producer_id, producer_epoch, commit=commit, coordinator_epoch=0, timestamp_ms=timestamp_ms
        )
