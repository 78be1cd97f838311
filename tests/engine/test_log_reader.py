"""A log of own and entered streams is read like one flat stream, whatever is asked."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from exacta.adapters.memory import MemoryJournal, MemoryStorage
from exacta.core.ids import Offset, PartitionId
from exacta.core.state.partition import Partition
from exacta.core.state.staged import EnteredStream
from exacta.engine.log_reader import MOST_PIECES, LogReader
from exacta.engine.reading import BatchReader, Read
from exacta.ports.compaction import Rules
from exacta.ports.journal import CompactionOrder, IndexEntry, Joining, JournalEntry
from exacta.protocol.kafka.batch_building import data_batch
from exacta.protocol.kafka.records import parse_batch_header, with_max_timestamp
from exacta.records.compaction import compaction
from exacta.records.record_format import KafkaRecordFormat
from tests.engine.rig import ManualLoop
from tests.shares import examples

OWN = 0
RECORDS = KafkaRecordFormat()


def a_batch(count: int, time_ms: int, *, fill: int = 1, append_time: bool = False) -> bytes:
    batch = data_batch(
        [b"r" * fill] * count,
        count,
        compression=0,
        transactional=True,
        first_timestamp_ms=time_ms,
        last_timestamp_ms=time_ms,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
    )
    return with_max_timestamp(batch, time_ms, log_append_time=True) if append_time else batch


class Logs:
    """The same batches in one flat stream, and in an own stream with entered ones between."""

    def __init__(self, pieces: list[tuple[bool, list[tuple[int, int, int]]]], append_time_ms: int = -1) -> None:
        """Lay out pieces: whether it has entered, and the count, the time and the fill of each of its batches."""
        self.loop = ManualLoop()
        self.flat, self.split = (MemoryJournal(MemoryStorage(), self.loop.call_soon) for _ in range(2))
        self.partition = Partition(PartitionId(OWN), "t", 0)
        self.firsts: list[int] = []
        offset, stream = 0, 1
        for has_entered, batches in pieces:
            begin, size, latest = offset, 0, -1
            for count, time_ms, fill in batches:
                append_time = has_entered and append_time_ms >= 0
                batch = a_batch(count, time_ms, fill=fill, append_time=append_time)
                seen_ms = append_time_ms if append_time else time_ms
                flat = with_max_timestamp(batch, seen_ms, log_append_time=True) if append_time else batch
                self._write(self.flat, OWN, offset, count, seen_ms, flat)
                place = (stream, offset - begin) if has_entered else (OWN, offset)
                self._write(self.split, *place, count, time_ms, batch)
                self.firsts.append(offset)
                offset, size, latest = offset + count, size + len(batch), max(latest, seen_ms)
            if has_entered and batches:
                entered = EnteredStream(
                    Offset(begin), Offset(offset), PartitionId(stream), size, latest, append_time_ms
                )
                self.partition.entered.append(entered)
                stream += 1
        self.end = offset
        self.log = LogReader(self.split, {PartitionId(OWN): self.partition})

    def _write(self, journal: MemoryJournal, stream: int, offset: int, count: int, time_ms: int, batch: bytes) -> None:
        row = IndexEntry(stream, offset, offset + count - 1, time_ms, 0, len(batch), count)
        journal.append(journal.position, [JournalEntry(b"", RECORDS.place(batch, offset), (row,))], lambda _: None)
        self.loop.settle()

    def compact(self, end_offset: int) -> None:
        """Compact both up to a batch's end; what has entered before it has joined the partition's own stream then."""
        joining = [
            Joining(each.stream, each.first_offset, each.append_time_ms, each.size)
            for each in self.partition.entered
            if each.end_offset <= end_offset
        ]
        rules = Rules(now_ms=0, delete_retention_ms=0)
        for journal, places in ((self.flat, []), (self.split, joining)):
            journal.seal()
            journal.append(journal.position, [JournalEntry(b"begins another segment")], lambda _: None)
            self.loop.settle()
            journal.compact([CompactionOrder(OWN, end_offset, rules, places)], {OWN: 0}, compaction, lambda _: None)
            self.loop.settle()

    def read(self, reader: Any, offset: int, end_offset: int, max_bytes: int) -> Iterator[tuple[bytes, str]]:
        reads: list[Read] = []
        BatchReader(reader, RECORDS, self.loop).read(reader.find(OWN, offset, end_offset, max_bytes), reads.extend)
        self.loop.settle()
        for read in reads:
            yield bytes(read.batches), read.fault


batches = st.lists(st.tuples(st.integers(1, 3), st.integers(-1, 9), st.integers(1, 40)), max_size=4)
layouts = st.lists(st.tuples(st.booleans(), batches), max_size=5)


@settings(max_examples=examples(300))
@given(layout=layouts, append_time_ms=st.sampled_from([-1, 5]), data=st.data())
def test_everything_is_found_as_in_one_flat_stream(
    layout: list[tuple[bool, list[tuple[int, int, int]]]], append_time_ms: int, data: st.DataObject
) -> None:
    logs = Logs(layout, append_time_ms)
    if data.draw(st.booleans()):
        within = {at for each in logs.partition.entered for at in range(each.first_offset + 1, each.end_offset)}
        logs.compact(data.draw(st.sampled_from([each for each in [*logs.firsts, logs.end] if each not in within])))
    offset = data.draw(st.integers(0, logs.end + 1))
    end_offset = data.draw(st.integers(0, logs.end + 1))
    flat, log = logs.flat, logs.log
    size_bytes = data.draw(st.integers(0, flat.size_bytes(OWN, 0, logs.end) + 9))
    for time_ms in range(11):
        assert log.find_by_time(OWN, time_ms, offset, end_offset) == flat.find_by_time(OWN, time_ms, offset, end_offset)
    assert log.find_latest(OWN, offset, end_offset) == flat.find_latest(OWN, offset, end_offset)
    assert log.count_records(OWN, offset, end_offset) == flat.count_records(OWN, offset, end_offset)
    assert log.size_bytes(OWN, offset, end_offset) == flat.size_bytes(OWN, offset, end_offset)
    assert log.offset_after(OWN, offset, end_offset, size_bytes) == flat.offset_after(
        OWN, offset, end_offset, size_bytes
    )
    found, wanted = (reader.find(OWN, offset, end_offset, size_bytes) for reader in (log, flat))
    assert [first for each in found for first in each.first_offsets] == [
        first for each in wanted for first in each.first_offsets
    ]
    assert [last for each in found for last in each.last_offsets] == [
        last for each in wanted for last in each.last_offsets
    ]
    assert sum(each.size for each in found) == sum(each.size for each in wanted)
    read, expected = (list(logs.read(reader, offset, end_offset, size_bytes)) for reader in (log, flat))
    assert b"".join(batch for batch, _ in read) == b"".join(batch for batch, _ in expected)
    assert not any(fault for _, fault in read)


def test_an_answer_does_not_leave_out_what_had_no_room() -> None:
    """A small batch behind a large stream has room where the rest of the stream has none."""
    logs = Logs([(True, [(1, 0, 400), (1, 0, 400)]), (False, [(1, 0, 1)])])
    found = logs.log.find(OWN, 0, logs.end, 600)
    assert [first for each in found for first in each.first_offsets] == [0]


@pytest.mark.parametrize("byte", [0, 11, 16, 20, 40, 61])
@pytest.mark.parametrize("append_time_ms", [-1, 5])
def test_an_altered_batch_is_not_made_good_by_being_moved(byte: int, append_time_ms: int) -> None:
    logs = Logs([(True, [(1, 0, 9), (2, 3, 9)])], append_time_ms)
    row, data = logs.split._batches[1][1]
    altered = bytearray(data)
    altered[byte] ^= 1
    logs.split._batches[1][1] = row, bytes(altered)
    reads = list(logs.read(logs.log, 0, logs.end, 1 << 20))
    assert [bool(fault) for _, fault in reads] == [False, True]
    assert parse_batch_header(reads[0][0]).base_offset == 0


class CountingJournal:
    """Note every question that the journal is asked."""

    def __init__(self, journal: MemoryJournal) -> None:
        self._journal = journal
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        self.asked += 1
        return getattr(self._journal, name)


@pytest.mark.parametrize("append_time_ms", [-1, 5])
def test_thousands_of_tiny_streams_are_not_asked_about_one_by_one(append_time_ms: int) -> None:
    """Every small transaction enters in place once the state holds no more."""
    count = MOST_PIECES + 100
    logs = Logs([(True, [(1, time_ms, 1)]) for time_ms in range(count)], append_time_ms)
    counting: Any = CountingJournal(logs.split)
    log = LogReader(counting, {PartitionId(OWN): logs.partition})
    size = logs.flat.size_bytes(OWN, 0, count)
    assert log.size_bytes(OWN, 0, count) == size
    assert log.count_records(OWN, 0, count) == count
    assert log.find_by_time(OWN, 5, 0, count) == logs.flat.find_by_time(OWN, 5, 0, count)
    assert log.find_latest(OWN, 0, count) == logs.flat.find_latest(OWN, 0, count)
    assert counting.asked < 15
    assert [each.last_offset for each in log.find(OWN, 0, count, size)] == list(range(MOST_PIECES))
    counting.asked = 0
    assert [each.last_offset for each in log.find(OWN, count - 1, count, size)] == [count - 1]
    assert counting.asked == 2, "how far it is compacted, and the one"


def test_a_stream_with_timestamps_of_both_kinds_is_found_by_both() -> None:
    """`message.timestamp.type` was changed in the middle of a transaction."""
    logs = Logs([(True, [(1, 0, 1), (1, 9, 1)])])
    [entered] = logs.partition.entered
    logs.partition.entered = [replace(entered, append_time_ms=5)]  # the time of the first batch
    found = [logs.log.find_by_time(OWN, time_ms, 0, logs.end) for time_ms in (5, 6, 9, 10)]
    assert [each and each.first_offset for each in found] == [0, 1, 1, None]
    latest = logs.log.find_latest(OWN, 0, logs.end)
    assert latest is not None
    assert (latest.first_offset, latest.max_timestamp_ms) == (1, 9)
