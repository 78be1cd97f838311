"""Gather encoded records into a record batch until it is full.

This module owns how full a batch is, and its compression. `exacta.protocol.kafka.records` has the layout of a batch;
its records are encoded elsewhere.
"""

from typing import Protocol

from exacta.client.producer_settings import COMPRESSION
from exacta.client.transactions import Producer
from exacta.protocol.kafka.batch_building import data_batch
from exacta.protocol.kafka.compression import LEVELS, compress
from exacta.protocol.kafka.records import HEADER_SIZE
from exacta.protocol.kafka.schema import Buffer


class Records(Protocol):
    """Rows on their way into the batches of one partition, in order."""

    @property
    def left(self) -> int:
        """Return how many rows are still to be taken."""

    def take(self, first: int, timestamp_delta_ms: int, most_bytes: int) -> tuple[Buffer, int]:
        """Take as many rows as come to `most_bytes`; return them as records, and how many they are.

        Their offset deltas begin at `first`. If that is 0, at least one row is taken, however large it is.
        """


class BatchBuilder:
    """Gathers the records of one batch of `producer`, up to about `most_bytes`."""

    __slots__ = (
        "_compression",
        "_first_ms",
        "_last_ms",
        "_most_bytes",
        "_parts",
        "_producer",
        "_sequence",
        "count",
        "size",
    )

    def __init__(self, producer: Producer, sequence: int, *, compression: str, most_bytes: int) -> None:
        self._producer = producer
        self._sequence = sequence
        self._compression = compression
        self._most_bytes = most_bytes
        self._first_ms = self._last_ms = 0
        self._parts: list[Buffer] = []
        self.count = 0
        self.size = HEADER_SIZE  # before compression

    def add(self, records: Records, timestamp_ms: int) -> None:
        """Add what fits of `records`, as written at that time."""
        if self.count == 0:
            self._first_ms = self._last_ms = timestamp_ms
        encoded, count = records.take(self.count, timestamp_ms - self._first_ms, self._most_bytes - self.size)
        if count:
            self._parts.append(encoded)
            self.size += len(encoded)
            self.count += count
            self._last_ms = max(self._last_ms, timestamp_ms)

    def build(self) -> bytes:
        """Return the batch; compressed, unless that makes it larger."""
        parts, compression = self._parts, "none"
        if self._compression != "none":
            plain = b"".join(parts)
            codec = COMPRESSION[self._compression]
            compressed = compress(codec, plain, LEVELS.get(codec, 0))
            if len(compressed) < len(plain):
                parts, compression = [compressed], self._compression
        return data_batch(
            parts,
            self.count,
            compression=COMPRESSION[compression],
            transactional=self._producer.is_transactional,
            first_timestamp_ms=self._first_ms,
            last_timestamp_ms=self._last_ms,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.producer_epoch,
            base_sequence=self._sequence,
        )
