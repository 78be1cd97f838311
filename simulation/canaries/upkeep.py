"""Planted bugs of what goes by itself: compaction, retention, and snapshots that are folded."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

from msgspec.structs import replace

from exacta.adapters.local.files import Files
from exacta.adapters.local.index.stream_index import Index
from exacta.adapters.local.opening import recovery, replay
from exacta.adapters.local.snapshots import snapshot_files
from exacta.adapters.local.space import compaction_writer
from exacta.core.commands import Command, DeleteRecords, ForgetCompacted, Trim
from exacta.core.decide import _DECIDE
from exacta.core.log.log_start import delete_records
from exacta.core.outcome import Outcome
from exacta.core.state.state import State
from exacta.engine.compaction_schedule import CompactionSchedule
from exacta.engine.upkeep import Upkeep
from exacta.ports.compaction import Buffer
from exacta.ports.journal import Schema
from exacta.ports.log import Visible
from exacta.protocol.kafka.committed import AbortedTransactions
from exacta.protocol.kafka.records import BatchHeader, parse_batch_header
from exacta.records.compaction import RecordCompaction
from exacta.records.keyed_records import keyed_records
from simulation.canaries import Replacements, canary
from simulation.canaries.storage import Unsynced


@canary("a tombstone goes before the older values of its key are gone", shows=r"tombstone gone: .* are there")
def tombstone_before_its_values() -> Replacements:
    note, kept = RecordCompaction.note, RecordCompaction._kept

    def hides_nothing(self: RecordCompaction, batch: Buffer) -> None:
        before = dict(self._last_offsets)
        note(self, batch)
        found = keyed_records(batch, parse_batch_header(batch), self._most_batch_bytes)
        if found is None:
            return
        for digest, is_tombstone in zip(self._digests(found.keys), found.tombstones, strict=True):
            if is_tombstone and digest in self._last_offsets:
                del self._last_offsets[digest]
                if digest in before:
                    self._last_offsets[digest] = before[digest]

    def without(self: RecordCompaction, header: BatchHeader, found: Any) -> list[int]:
        return [index for index in kept(self, header, found) if not found.tombstones[index]]

    return [(RecordCompaction, "note", hides_nothing), (RecordCompaction, "_kept", without)]


@canary("a tombstone goes at once, and not after delete.retention.ms", shows=r"tombstone gone: .* before its time")
def tombstone_before_its_time() -> Replacements:
    kept = RecordCompaction._kept

    def without(self: RecordCompaction, header: BatchHeader, found: Any) -> list[int]:
        return [index for index in kept(self, header, found) if not found.tombstones[index]]

    return [(RecordCompaction, "_kept", without)]


@canary(
    "an aborted record is noted as the last of its key", shows=r"lost write: .* is the last of .*, and is not there"
)
def aborted_record_is_the_last() -> Replacements:
    note = RecordCompaction.note

    def notes_all(self: RecordCompaction, batch: Buffer) -> None:
        aborted, self._aborted = self._aborted, AbortedTransactions(())
        note(self, batch)
        self._aborted = aborted

    return [(RecordCompaction, "note", notes_all)]


@canary(
    "an abort marker goes while readers are told of its transaction: they drop what its producer writes later",
    shows=r"lost write: .* (is the last of .*, and is not there|which nothing had superseded)",
)
def abort_marker_before_its_entry() -> Replacements:
    return [
        (AbortedTransactions, "ends", lambda self, header: False),
        (CompactionSchedule, "to_forget", lambda self: []),
    ]


@canary("readers are told no more of an aborted transaction whose records are still there", shows=r"aborted read: ")
def aborted_entry_before_its_records() -> Replacements:
    def to_forget(self: CompactionSchedule) -> list[Command]:
        return [
            ForgetCompacted(topic=partition.topic, partition=partition.index, before_offset=seen.last_stable_offset)
            for partition, seen, _ in self._partitions()
            if partition.aborted and partition.aborted[0].last_offset < seen.last_stable_offset
        ]

    return [(CompactionSchedule, "to_forget", to_forget)]


@canary("a compacted segment is put in place before it is durable", shows=r"8: .*compacted-\d+\.log, byte \d+: ")
def compacted_segment_not_synced() -> Replacements:
    write = compaction_writer._pass

    def write_unsynced(files: Files, *arguments: Any) -> object:
        return write(cast("Files", Unsynced(files)), *arguments)

    return [(compaction_writer, "_pass", write_unsynced)]


@canary("compaction goes beyond the last stable offset", shows=r"lost write: .*(last of|superseded)|aborted read: ")
def compaction_beyond_the_stable_offset() -> Replacements:
    candidate = CompactionSchedule._candidate

    def beyond(self: CompactionSchedule, partition: Any, seen: Visible, compacting: Any, now_ms: int) -> object:
        return candidate(self, partition, replace(seen, last_stable_offset=seen.high_watermark), compacting, now_ms)

    return [(CompactionSchedule, "_candidate", beyond)]


@canary(
    "after a restart what was compacted is found in the old segments", shows=r"comes back: |aborted read: |lost write: "
)
def old_segments_after_a_restart() -> Replacements:
    recover = recovery.recover

    class PrefersTheOld(Index):
        is_recovering = True

        def add_compacted(self, segment: Any) -> None:
            old = {stream: self._streams[stream][:] for stream in segment.streams if stream in self._streams}
            super().add_compacted(segment)
            if self.is_recovering:
                self._streams.update(old)

    def recovers(files: Files, schema: Schema | None = None) -> recovery.OpenedDirectory:
        found = recover(files, schema)
        cast("PrefersTheOld", found.index).is_recovering = False
        return found

    return [(recovery, "Index", PrefersTheOld), (recovery, "recover", recovers)]


@canary("retention deletes beyond the last stable offset", shows=r"retention: .* which are open")
def retention_beyond_the_stable_offset() -> Replacements:
    kept_from = Upkeep._kept_from

    def beyond(self: Upkeep, partition: Any, seen: Visible, now_ms: int) -> int:
        return kept_from(self, partition, replace(seen, last_stable_offset=seen.high_watermark), now_ms)

    def trim(state: State, command: Trim, now_ms: int) -> Outcome:
        before = command.before_offset
        return delete_records(
            state, DeleteRecords(topic=command.topic, partition=command.partition, before_offset=before), now_ms
        )

    return [(Upkeep, "_kept_from", beyond), (_DECIDE, Trim, trim)]


@canary(
    "retention goes by the newest batch that is old enough, and not by the oldest that is not",
    shows=r"retention: .* not before",
)
def retention_of_the_young() -> Replacements:
    kept_from = Upkeep._kept_from

    def goes_further(self: Upkeep, partition: Any, seen: Visible, now_ms: int) -> int:
        offset = kept_from(self, partition, seen, now_ms)
        return int(seen.last_stable_offset) if offset > seen.log_start_offset else offset

    return [(Upkeep, "_kept_from", goes_further)]


@canary("a snapshot's fold leaves out what came last", shows=r"8: what was recovered at .* is not the fold")
def fold_without_the_last() -> Replacements:
    def all_but_the_last(*arguments: Any) -> Iterator[bytes]:
        return iter(list(replay.events(*arguments))[:-1])

    shorter = SimpleNamespace(events=all_but_the_last, segments_after=replay.segments_after)
    return [(snapshot_files, "replay", shorter)]
