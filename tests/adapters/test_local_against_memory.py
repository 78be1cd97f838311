"""The local journal and the one in memory, side by side: whatever is done to them, they answer the same."""

import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from exacta.adapters.local.files import Files
from exacta.adapters.memory import MemoryJournal, MemoryStorage
from exacta.ports.journal import CompactionOrder, Extent, IndexEntry, Joining, Journal, JournalEntry
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.compacting import RULES, thinned
from tests.adapters.turns import Turns, append, read
from tests.shares import examples

STREAMS = st.integers(0, 3)
GONE = 1 << 60
"""The floor of a stream that is gone: nothing is above it."""
SEGMENT_BYTES = 700


def offsets(extents: Sequence[Extent]) -> list[tuple[int, int]]:
    """Return the first and the last offset of each batch."""
    return [pair for extent in extents for pair in zip(extent.first_offsets, extent.last_offsets, strict=True)]


class SideBySide(RuleBasedStateMachine):
    """Both journals; `storage` and `files` outlive them."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = Turns()
        self.next_offsets: dict[int, int] = {}
        self.floors: dict[int, int] = {}
        self.storage = MemoryStorage(is_quick=True)
        self.files = self.make_files()

    def make_files(self) -> Files | Path:
        return SimulatedDisk()

    @initialize()
    def open(self) -> None:
        self.memory = MemoryJournal(self.storage, self.turns.call_soon)
        self.local = open_journal(
            self.files, self.turns.call_soon, segment_bytes=SEGMENT_BYTES, elapsed_seconds=lambda: 0.0
        )

    def both(self) -> tuple[Journal, Journal]:
        return self.memory, self.local

    @rule(data=st.data(), entry_count=st.integers(1, 4), way=st.sampled_from(["append", "ahead", "durably"]))
    def append(self, data: st.DataObject, entry_count: int, way: str) -> None:
        entries = []
        for _ in range(entry_count):
            payload, index, start = [], [], 0
            for stream in data.draw(st.lists(STREAMS, max_size=3)):
                if self.is_gone(stream):
                    continue
                first_offset = self.next_offsets.get(stream, 0) + data.draw(st.sampled_from([0, 0, 0, 2]))
                last_offset = first_offset + data.draw(st.integers(0, 3))
                self.next_offsets[stream] = last_offset + 1
                batch = data.draw(st.binary(max_size=150))
                gap = data.draw(st.sampled_from([b"", b"between"]))
                payload += [gap, batch]
                start += len(gap)
                time, records = data.draw(st.integers(0, 50)), data.draw(st.integers(0, last_offset - first_offset + 1))
                index.append(IndexEntry(stream, first_offset, last_offset, time, start, len(batch), records))
                start += len(batch)
            entries.append(JournalEntry(data.draw(st.binary(max_size=20)), tuple(payload), tuple(index)))
        durably = way == "durably"
        if way != "append" and self.local.write(self.local.position, entries, durably=durably) is not None:
            assert self.memory.write(self.memory.position, entries, durably=durably) is not None
            return
        for journal in self.both():
            append(self.turns, journal, *entries)

    def is_gone(self, stream: int) -> bool:
        return self.floors.get(stream) == GONE

    def asked(self, stream: int, offset: int) -> int:
        """Return an offset for which one may ask: not below the floor."""
        return max(offset, self.floors.get(stream, 0))

    @rule(data=st.data())
    def clean(self, data: st.DataObject) -> None:
        """Raise some floors, of what is durable by then; free space until nothing is left to free."""
        for journal in self.both():
            append(self.turns, journal, JournalEntry(b"makes durable what is written"))
        for stream, next_offset in self.next_offsets.items():
            if not self.is_gone(stream):
                raised = st.sampled_from([0, next_offset // 2, next_offset, next_offset, GONE])
                self.floors[stream] = self.asked(stream, data.draw(raised))
        floors = {stream: self.asked(stream, 0) for stream in range(4) if not self.is_gone(stream)}
        for journal in self.both():
            while self.turns.wait(lambda done, journal=journal: journal.clean(floors, done)).freed_bytes:
                pass

    def is_compactable(self, stream: int, next_offset: int) -> bool:
        return self.local.compactable(stream, 1 << 60)[1] == next_offset

    def seal(self, *next_offsets: tuple[int, int]) -> None:
        """Seal what is written, and wait until it can be compacted."""
        for journal in self.both():
            journal.seal()
            append(self.turns, journal, JournalEntry(b"makes durable what is written"))
        for stream, next_offset in next_offsets:
            if self.next_offset(stream) == next_offset != GONE and self.local.find(stream, 0, 1 << 60, 1):
                self.turns.run_until(partial(self.is_compactable, stream, next_offset))

    @rule(data=st.data(), streams=st.sets(STREAMS, min_size=1))
    def compact(self, data: st.DataObject, streams: set[int]) -> None:
        """Compact some streams up to where the local journal can: whole segments only."""
        self.seal(*self.next_offsets.items())
        floors = {stream: self.asked(stream, 0) for stream in range(4) if not self.is_gone(stream)}
        orders = [
            CompactionOrder(stream, self.local.compactable(stream, data.draw(st.integers(0, 80)))[1], RULES)
            for stream in streams & floors.keys()
        ]
        for journal in self.both():
            assert self.turns.wait(lambda done, of=journal: of.compact(orders, floors, thinned, done)) is None

    @rule(stream=STREAMS, other=STREAMS)
    def join(self, stream: int, other: int) -> None:
        """Compact a stream with another one behind it, which stays as it is."""
        end, count = self.next_offsets.get(stream, 0), self.next_offsets.get(other, 0)
        if stream == other or self.is_gone(stream) or self.asked(other, 0) or self.local.compacted_to(other):
            return
        self.seal((stream, end), (other, count))
        if not count or (self.local.compactable(stream, 1 << 60)[1], self.local.compactable(other, 1 << 60)[1]) != (
            end,
            count,
        ):
            return  # there is nothing, or all of it is gone
        order = CompactionOrder(stream, end + count, RULES, [Joining(other, end, 7, 0)])
        floors = {each: self.asked(each, 0) for each in range(4) if not self.is_gone(each)}
        for journal in self.both():
            assert self.turns.wait(lambda done, of=journal: of.compact([order], floors, thinned, done)) is None
        self.next_offsets[stream] = end + count

    @rule(stream=STREAMS, offset=st.integers(0, 60), length=st.integers(0, 60), max_bytes=st.integers(0, 2000))
    def find_and_read(self, stream: int, offset: int, length: int, max_bytes: int) -> None:
        found = []
        offset = self.asked(stream, offset)
        for journal in self.both():
            extents = journal.find(stream, offset, offset + length, max_bytes)
            found.append((offsets(extents), sum(extent.size for extent in extents), read(self.turns, journal, extents)))
        assert found[0] == found[1]

    @rule(stream=STREAMS, timestamp_ms=st.integers(0, 60), offset=st.integers(0, 60), length=st.integers(0, 60))
    def find_by_time(self, stream: int, timestamp_ms: int, offset: int, length: int) -> None:
        offset = self.asked(stream, offset)
        arguments = stream, timestamp_ms, offset, offset + length
        assert self.memory.find_by_time(*arguments) == self.local.find_by_time(*arguments)

    @rule(stream=STREAMS, offset=st.integers(0, 60), length=st.integers(0, 60))
    def find_latest(self, stream: int, offset: int, length: int) -> None:
        arguments = stream, self.asked(stream, offset), self.asked(stream, offset) + length
        assert self.memory.find_latest(*arguments) == self.local.find_latest(*arguments)
        assert self.memory.size_bytes(*arguments) == self.local.size_bytes(*arguments)

    @rule(stream=STREAMS, offset=st.integers(0, 60), length=st.integers(0, 60), size_bytes=st.integers(0, 600))
    def offset_after(self, stream: int, offset: int, length: int, size_bytes: int) -> None:
        arguments = stream, self.asked(stream, offset), self.asked(stream, offset) + length, size_bytes
        assert self.memory.offset_after(*arguments) == self.local.offset_after(*arguments)

    @rule(stream=STREAMS, offset=st.integers(0, 60), end_offset=st.integers(0, 80))
    def count_records(self, stream: int, offset: int, end_offset: int) -> None:
        arguments = stream, self.asked(stream, offset), end_offset
        assert self.memory.count_records(*arguments) == self.local.count_records(*arguments)

    @rule(blob=st.binary(max_size=30))
    def save_snapshot(self, blob: bytes) -> None:
        for journal in self.both():
            append(self.turns, journal, JournalEntry(b"makes durable what is written"))
            saved = self.turns.wait(lambda done, journal=journal: journal.save_snapshot(blob, journal.position, done))
            assert saved is None

    def same_replay(self) -> None:
        (memory_blob, memory_events), (local_blob, local_events) = self.memory.replay(), self.local.replay()
        assert memory_blob == local_blob
        assert list(memory_events) == list(local_events)

    @rule()
    def reopen(self) -> None:
        self.close()
        self.open()
        self.same_replay()

    @rule()
    def crash(self) -> None:
        """Lose power between two calls: nothing may be missing but what was only written."""
        if isinstance(self.files, SimulatedDisk):
            crashed, loses = self.files.crashed(), self.storage.unsynced > 0
            self.storage.stop_machine()
            self.close()
            self.files = crashed
            self.open()
            assert self.local.may_have_lost or not loses
            self.same_replay()
            self.next_offsets = {stream: self.next_offset(stream) for stream in self.next_offsets}

    def next_offset(self, stream: int) -> int:
        if self.is_gone(stream):
            return GONE
        extents = self.local.find(stream, self.asked(stream, 0), 1 << 60, 1 << 60)
        return extents[-1].last_offset + 1 if extents else self.asked(stream, 0)

    @invariant()
    def same_last_batches(self) -> None:
        if hasattr(self, "local"):
            for stream in self.next_offsets:
                last = self.next_offsets[stream] - 1
                if last < self.floors.get(stream, 0):
                    continue
                memory, local = (journal.find(stream, last, last + 1, 0) for journal in self.both())
                assert [extent.size for extent in memory] == [extent.size for extent in local]
                assert offsets(memory) == offsets(local)

    def close(self) -> None:
        for journal in self.both():
            journal.close()
        self.turns.drain()

    def teardown(self) -> None:
        if hasattr(self, "local"):
            self.close()


class SideBySideOnRealFiles(SideBySide):
    """The same over the operating system's files."""

    def make_files(self) -> Path:
        self.directory = Path(tempfile.mkdtemp(prefix="exacta-journal-"))
        return self.directory

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.directory)


TestSideBySide = SideBySide.TestCase
TestSideBySide.settings = settings(max_examples=examples(60), stateful_step_count=30)
TestSideBySideOnRealFiles = SideBySideOnRealFiles.TestCase
TestSideBySideOnRealFiles.settings = settings(max_examples=examples(10), stateful_step_count=30)
