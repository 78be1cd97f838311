"""How the local journal reads: few system calls, a bounded number of open files, never waiting on the event loop."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exacta.adapters.local import LocalJournal, reading
from exacta.adapters.local.format import SEGMENT_HEADER_BYTES
from exacta.adapters.local.index.segment_index import pack_segment_index, unpack_segment_index
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.index.stream_index import Index
from exacta.ports.journal import Buffer, Failed, IndexEntry
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.turns import Turns, append, batch, read

EVERYTHING = 1 << 40


@given(rows=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), min_size=1, max_size=20), data=st.data())
def test_any_rows_are_read_as_if_one_by_one(rows: list[tuple[int, int]], data: st.DataObject):
    """`rows` are gaps and sizes; with such small limits every kind of plan occurs."""
    content = bytes(range(256)) * 6
    index, segment = Index(), Segment(0)
    index.add_segment(segment)
    wanted, at = [], 0
    for number, (gap, size) in enumerate(rows):
        index.add(0, [IndexEntry(1, number, number, 0, at + gap, size)])
        at += gap
        wanted.append(content[at : at + size])
        at += size
    low = data.draw(st.integers(0, len(rows) - 1))
    high = data.draw(st.integers(low + 1, len(rows)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "GAP_BYTES", 8)
        patch.setattr(reading, "RUN_BYTES", 100)
        (extent,) = index.find(1, low, high, EVERYTHING)
        found_segment, runs = reading.plan(extent)
    assert found_segment is segment
    starts = [run.offset - SEGMENT_HEADER_BYTES for run in runs]
    buffers: list[Buffer] = [content[start : start + run.size] for start, run in zip(starts, runs, strict=True)]
    assert reading.assemble(runs, buffers) == b"".join(wanted[low:high])
    assert all(run.size <= max(100, 30) for run in runs)


def test_what_look_ups_have_taken_into_memory_is_given_back():
    released: list[Segment] = []
    index, segments = Index(released.append), [Segment(base) for base in range(0, 1_000, 100)]
    for number, segment in enumerate(segments):
        index.add_segment(segment)
        index.add(segment.base, [IndexEntry(1, number, number, 0, 0, 10)])
        content = memoryview(b"".join(pack_segment_index(segment.growing, b"12345678", segment.base + 100, 0)))
        segment_index = unpack_segment_index("name", content, b"12345678")
        assert segment_index is not None
        segment.seal(segment_index)
    for _ in range(1_000):  # also where only the newest is looked into, as by who follows the end
        assert len(index.find(1, 9, 10, EVERYTHING)) == 1
    assert set(released) == {segments[-1]}
    released.clear()
    for at in range(1_000):
        assert len(index.find(1, at % 10, at % 10 + 1, EVERYTHING)) == 1
    assert set(released) == set(segments)


def test_many_small_batches_take_one_read():
    disk, turns = SimulatedDisk(), Turns()
    journal = open_journal(disk, turns.call_soon)
    append(turns, journal, *(batch(number % 2, number // 2, b"x" * 100) for number in range(2000)))
    extents = journal.find(1, 0, 1000, EVERYTHING)
    assert len(extents) == 1
    assert len(reading.plan(extents[0])[1]) == 1
    journal.close()


@pytest.fixture
def sealed() -> tuple[SimulatedDisk, Turns, LocalJournal]:
    """A journal of twenty segments with one batch each."""
    disk, turns = SimulatedDisk(), Turns()
    journal = open_journal(disk, turns.call_soon, segment_bytes=1)
    for number in range(20):
        append(turns, journal, batch(1, number, b"%02d" % number * 50))
    journal.close()
    return disk, turns, open_journal(disk, turns.call_soon, segment_bytes=1)


def test_open_handles_are_limited(sealed: tuple[SimulatedDisk, Turns, LocalJournal], monkeypatch: pytest.MonkeyPatch):
    disk, turns, journal = sealed
    monkeypatch.setattr(reading, "HANDLE_LIMIT", 3)
    whole = b"".join(b"%02d" % number * 50 for number in range(20))
    for _ in range(2):
        assert read(turns, journal, journal.find(1, 0, 20, EVERYTHING)) == whole
        assert len(disk.open_handles) == 3 + 1  # and the active segment's handle
    # Those used last are the ones that stay open.
    recent = [extent for number in (3, 5, 7) for extent in journal.find(1, number, number + 1, 0)]
    read(turns, journal, recent)
    assert journal.read_cached(recent) == [b"03" * 50, b"05" * 50, b"07" * 50]
    assert journal.read_cached(journal.find(1, 4, 5, 0)) is None
    # Many reads at once, of the same and of other segments.
    results: list[tuple[int, list[Buffer | Failed]]] = []

    def read_one(number: int) -> None:
        journal.read(journal.find(1, number, number + 1, 0), lambda result: results.append((number, result)))

    for number in [*range(20), *range(20)]:
        read_one(number)
    turns.run_until(lambda: len(results) == 40)
    assert all(result == [b"%02d" % number * 50] for number, result in results)
    assert len(disk.open_handles) == 3 + 1
    journal.close()
    assert disk.open_handles == []


def test_a_handle_stays_open_as_long_as_its_thread_reads(
    sealed: tuple[SimulatedDisk, Turns, LocalJournal], monkeypatch: pytest.MonkeyPatch
):
    """Two threads have opened the same segment, and the first one ends while the second one reads."""
    disk, turns, journal = sealed
    jobs: list[Callable[[], None]] = []
    worker = SimpleNamespace(submit=jobs.append, close=lambda: None)
    reader = reading.Reader(disk, turns.call_soon, lambda name, threads: worker)
    open_file, read_file = disk.open, disk.read

    def open_second(name: str) -> int:
        monkeypatch.setattr(disk, "open", open_file)
        first()
        monkeypatch.setattr(disk, "read", read_second)
        return open_file(name)

    def read_second(handle: int, size: int, offset: int) -> bytes:
        turns.drain()  # the first read hands its handle over
        return read_file(handle, size, offset)

    results: list[list[Buffer | Failed]] = []
    extents = journal.find(1, 3, 4, 0)
    for _ in range(2):
        reader.read(extents, results.append)
    first, second = jobs
    monkeypatch.setattr(disk, "open", open_second)
    second()
    turns.drain()
    assert results == [[b"03" * 50]] * 2
    reader.close()
    journal.close()
    assert disk.open_handles == []


def test_closing_finishes_reads(sealed: tuple[SimulatedDisk, Turns, LocalJournal]):
    disk, turns, journal = sealed
    results: list[list[Buffer | Failed]] = []
    for number in range(20):
        journal.read(journal.find(1, number, number + 1, 0), results.append)
    journal.close()
    assert disk.open_handles == []
    turns.drain()
    found = [buffer for result in results for buffer in result if not isinstance(buffer, Failed)]
    assert sorted(bytes(buffer[:2]) for buffer in found) == [b"%02d" % number for number in range(20)]


def test_read_cached_gives_up_where_it_would_wait():
    disk, turns = SimulatedDisk(), Turns()
    journal = open_journal(disk, turns.call_soon)
    append(turns, journal, batch(1, 0, b"data"))
    extents = journal.find(1, 0, 1, 0)
    disk.nowait = False  # not in memory now
    assert journal.read_cached(extents) is None
    disk.nowait = True
    assert journal.read_cached(extents) == [b"data"]
    disk.nowait = None  # the file system cannot tell: from then on it is not asked again
    assert journal.read_cached(extents) is None
    disk.nowait = True
    assert journal.read_cached(extents) is None
    assert read(turns, journal, extents) == b"data"
    journal.close()


def test_file_shorter_than_its_index_fails_the_read():
    disk, turns = SimulatedDisk(), Turns()
    journal = open_journal(disk, turns.call_soon)
    append(turns, journal, batch(1, 0, b"data"))
    (name,) = (name for name in disk.files if name.endswith(".log"))
    disk.files[name].truncate(len(disk.content(name)) - 1)
    extents = journal.find(1, 0, 1, 0)
    assert journal.read_cached(extents) is None
    (result,) = turns.wait(lambda done: journal.read(extents, done))
    assert isinstance(result, Failed)
    assert "ends before byte" in result.reason
    journal.close()


def test_closing_after_the_event_loop_is_closed():
    """The engine is gone: its callbacks go nowhere, and everything is released all the same."""
    disk = SimulatedDisk()

    def closed_loop(*_: object) -> None:
        raise RuntimeError("Event loop is closed")

    journal = open_journal(disk, closed_loop)
    journal.save_snapshot(b"blob", 0)
    journal.append(0, [batch(1, 0, b"data")], lambda result: None)
    journal.close()
    assert disk.open_handles == []
    journal = open_journal(disk, closed_loop)
    blob, events = journal.replay()
    assert (blob, len(list(events))) == (b"blob", 1)
    journal.close()
