"""Log compaction: the last record of each key stays, whichever protocol wrote it, with the markers that readers need.

Implements `exacta.ports.compaction`, which tells the order of calls, slices and crashes. Decides which records and
markers are removed. `keyed_records.py` finds the records of a batch, and rewrites it, for each encoding. What the
rules call a record is a Pulsar message as well.

The rules, as Apache Kafka's (`Cleaner.java`, `MemoryRecords.filterTo`, KIP-58, KIP-534):

- A record is removed if a later one of its key was noted, or if it has no key.
- The records of aborted transactions are removed at once, and are never noted: they would hide valid records.
- A tombstone, a record without a value, is kept until its batch's *delete horizon*, so that a reader who has seen the
  record before it learns that the key is gone. The horizon is set by the first compaction that leaves the tombstone, at
  `now + delete.retention.ms`, and stands where the batch's base timestamp was.
- A marker is kept as long as a batch of its transaction is. Then it gets a horizon, and goes when that has passed.
  A marker that aborts stays beyond that while readers are told of its transaction: until they see the marker, they drop
  what the producer has written.
- The last batch stays, though maybe without records.

Differences from Apache Kafka:

- A marker gets its horizon by the compaction that removes the last of its transaction, not by the next one.
- A transaction that was staged (`exacta.core.log.staging`) has no marker. As long as a batch of it is there, the next
  marker of its producer stays, too.
- No batch is kept for the sake of its producer's sequence numbers: they are in the state, which is no fold of the log.
- A batch that cannot be read is kept as it is, instead of ending all compaction of its partition. Of Pulsar's entries
  that are encrypted batches, and chunks of large messages.
- A batch that is emptied has no timestamp any more, so that a look-up of the latest timestamp does not find it.

Slices. A record is judged only in the pass of its key's slice, also by its tombstone's horizon, because no other pass
has noted the later records of the key. Horizons are set only in the last pass, when nothing older is left of any key.
So a horizon that is met in an earlier pass was set by a compaction that was finished, and everything that was to go
before it is gone. The result does not depend on the number of slices.

Keys of less than 16 bytes stand for themselves, longer ones by a digest of 16 bytes. So no short key can be taken for a
digest, and no two digests are expected to be equal by chance. Python's `hash()` is not used, where they would be.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final
from zlib import crc32

from exacta.ports.compaction import Buffer, Rewritten, Rules
from exacta.protocol.kafka.batch_building import emptied
from exacta.protocol.kafka.committed import AbortedTransactions
from exacta.protocol.kafka.records import BatchHeader, CorruptBatch, move_batches, parse_batch_header, sound_batches
from exacta.records.keyed_records import KeyedRecords, keyed_records

_DIGEST_BYTES: Final = 16
_LATEST_HORIZON_MS: Final = (1 << 63) - 1


def compaction(rules: Rules, slice_number: int = 0, slice_count: int = 1) -> "RecordCompaction":
    """Begin a pass; see `exacta.ports.compaction.Compact`."""
    return RecordCompaction(rules, slice_number, slice_count)


class RecordCompaction:
    """Implement `exacta.ports.compaction.Compaction`."""

    def __init__(self, rules: Rules, slice_number: int, slice_count: int) -> None:
        if not 0 <= slice_number < slice_count:
            raise ValueError(f"there is no slice {slice_number} of {slice_count}")
        self.unreadable = 0
        self._now_ms = rules.now_ms
        self._most_batch_bytes = rules.most_batch_bytes
        self._slice = slice_number
        self._slices = slice_count
        self._is_last_pass = slice_number == slice_count - 1
        self._new_horizon_ms = min(rules.now_ms + rules.delete_retention_ms, _LATEST_HORIZON_MS)
        self._aborted = AbortedTransactions(rules.aborted)
        self._last_offsets: dict[bytes, int] = {}
        self._producers_left: set[int] = set()
        """Producers that have a batch left of the transaction that they are in."""

    def check(self, batch: Buffer, first_offset: int, last_offset: int) -> None:
        """See `Compaction.check`."""
        size, fault = sound_batches(batch, (first_offset,))
        if fault:
            raise CorruptBatch(fault)
        header = parse_batch_header(batch)
        if (size, header.last_offset) != (len(batch), last_offset):
            raise CorruptBatch(f"{header} is not of {len(batch)} bytes, or does not end at offset {last_offset}")

    def moved(self, batch: Buffer, first_offset: int, append_time_ms: int) -> bytearray:
        """See `Compaction.moved`."""
        moved = bytearray(batch)
        move_batches(memoryview(moved), (first_offset,), append_time_ms)
        return moved

    def note(self, batch: Buffer) -> None:
        """See `Compaction.note`."""
        header = parse_batch_header(batch)
        if header.control or not header.record_count or self._aborted.has(header):
            return
        found = keyed_records(batch, header, self._most_batch_bytes)
        if found is None:
            return
        last_offsets, base_offset = self._last_offsets, header.base_offset
        for digest, offset_delta in zip(self._digests(found.keys), found.offset_deltas, strict=True):
            if digest is not None:
                last_offsets[digest] = base_offset + offset_delta

    def rewrite(self, batch: Buffer, is_last: bool) -> Rewritten | None:
        """See `Compaction.rewrite`."""
        header = parse_batch_header(batch)
        if header.control:
            return self._marker(batch, header, is_last)
        rewritten = None if self._aborted.has(header) else self._data(batch, header)
        if rewritten is None and is_last:
            rewritten = Rewritten(emptied(header), 0, -1)
        if rewritten is not None and header.transactional:
            self._producers_left.add(header.producer_id)
        return rewritten

    def _data(self, batch: Buffer, header: BatchHeader) -> Rewritten | None:
        if not header.record_count:
            return None
        found = keyed_records(batch, header, self._most_batch_bytes)
        if found is None:
            self.unreadable += 1
            return Rewritten(batch, header.record_count, header.max_timestamp)
        kept = self._kept(header, found)
        if not kept:
            return None
        horizon_ms = None
        if self._is_last_pass and header.delete_horizon_ms is None:
            tombstones = found.tombstones
            if any(tombstones) and any(tombstones[index] for index in kept):
                horizon_ms = self._new_horizon_ms
        if len(kept) == len(found.keys) and horizon_ms is None:
            return Rewritten(batch, header.record_count, header.max_timestamp)
        rewritten, max_timestamp_ms = found.rewritten(kept, horizon_ms)
        return Rewritten(rewritten, len(kept), max_timestamp_ms)

    def _kept(self, header: BatchHeader, found: KeyedRecords) -> list[int]:
        """Return the places in the batch of the records that stay."""
        keys, tombstones, offset_deltas = found.keys, found.tombstones, found.offset_deltas
        # Behind a batch that could not be read, an older record of the key may be left (see `Compaction.unreadable`).
        tombstones_go = self._has_passed(header) and not self.unreadable
        last_offset_of, base_offset = self._last_offsets.get, header.base_offset
        kept: list[int] = []
        for index, digest in enumerate(self._digests(keys)):
            if digest is None:  # the record has no key, or another pass judges it
                if keys[index] is not None:
                    kept.append(index)
            elif last_offset_of(digest, -1) <= base_offset + offset_deltas[index] and not (
                tombstones_go and tombstones[index]
            ):
                kept.append(index)
        return kept

    def _marker(self, batch: Buffer, header: BatchHeader, is_last: bool) -> Rewritten | None:
        has_records = header.producer_id in self._producers_left
        self._producers_left.discard(header.producer_id)
        if header.delete_horizon_ms is None and self._is_last_pass and not has_records:
            found = keyed_records(batch, header, self._most_batch_bytes)
            if found is not None:
                batch, _ = found.rewritten(range(len(found.keys)), self._new_horizon_ms)
        elif self._has_passed(header) and not has_records and not is_last and not self._aborted.ends(header):
            return None
        return Rewritten(batch, 0, header.max_timestamp)

    def _has_passed(self, header: BatchHeader) -> bool:
        return header.delete_horizon_ms is not None and header.delete_horizon_ms <= self._now_ms

    def _digests(self, keys: Sequence[bytes | None]) -> list[bytes | None]:
        """Return the bytes that stand for each key; None for a key of another slice, or for no key."""
        if self._slices > 1:
            number, count = self._slice, self._slices
            keys = [key if key is not None and crc32(key) % count == number else None for key in keys]
        return [
            key if key is None or len(key) < _DIGEST_BYTES else blake2b(key, digest_size=_DIGEST_BYTES).digest()
            for key in keys
        ]
