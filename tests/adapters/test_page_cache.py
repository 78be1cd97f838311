"""Where it is dear to let the page cache grow, the log gives back what was used least recently (decision 0024)."""

import os
from pathlib import Path

import pytest

from exacta.adapters.local import LocalJournal, journal, page_cache
from exacta.adapters.local.files import PosixFiles
from exacta.adapters.local.page_cache import (
    DEAR_S_PER_BYTE,
    LARGE_BYTES,
    MEASURED_BYTES,
    SEGMENTS_WITHOUT_GROWTH,
    Growth,
)
from simulation.disk.simulated import SimulatedDisk

from .turns import Turns, append, batch, read

EVERYTHING = 1 << 40
BATCH_BYTES = 1_000
MIB = 1 << 20


class TestGrowth:
    def segment(self, growth: Growth, s_per_byte: float, size: int = LARGE_BYTES, total: int = MEASURED_BYTES) -> bool:
        """Write a segment in groups of one size, and judge it."""
        for _ in range(total // size):
            growth.took(size, size * s_per_byte)
        return growth.is_refused()

    def test_it_is_welcome_where_it_costs_little(self) -> None:
        growth = Growth()
        assert not growth.is_refused()
        assert not any(self.segment(growth, DEAR_S_PER_BYTE * 0.99) for _ in range(3))

    def test_it_is_refused_for_a_while_where_it_is_dear_and_then_tried_again(self) -> None:
        growth = Growth()
        assert self.segment(growth, DEAR_S_PER_BYTE * 1.01)
        for _ in range(SEGMENTS_WITHOUT_GROWTH - 1):
            assert self.segment(growth, 0.0)
        assert not self.segment(growth, 0.0)
        assert not self.segment(growth, 0.0)

    def test_each_dear_segment_lets_the_while_begin_anew(self) -> None:
        growth = Growth()
        for _ in range(3):
            assert self.segment(growth, 1.0)
        assert [self.segment(growth, 0.0) for _ in range(SEGMENTS_WITHOUT_GROWTH)] == [True] * (
            SEGMENTS_WITHOUT_GROWTH - 1
        ) + [False]

    def test_small_groups_and_few_large_ones_say_nothing(self) -> None:
        growth = Growth()
        assert not self.segment(growth, 1.0, size=LARGE_BYTES - 1)
        assert not self.segment(growth, 1.0, total=MEASURED_BYTES - LARGE_BYTES)
        assert not self.segment(growth, 1.0, total=MEASURED_BYTES - LARGE_BYTES), "the segments were added up"


class Clock:
    """Each look at it takes so long."""

    step_s = 0.0

    def __init__(self) -> None:
        self._now_s = 0.0

    def __call__(self) -> float:
        self._now_s += self.step_s
        return self._now_s


class Disk(SimulatedDisk):
    """Tells which files had to leave the cache, in order."""

    refuses = False

    def __init__(self) -> None:
        super().__init__()
        self.released: list[str] = []

    def release_cached(self, handle: int) -> None:
        if self.refuses:
            raise OSError("no such advice")
        self.released.append(self._handles[handle][0])


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A disk beneath a journal that has one batch in each segment, and keeps three of them in the cache."""
    monkeypatch.setattr(page_cache, "LARGE_BYTES", 1)
    monkeypatch.setattr(page_cache, "MEASURED_BYTES", 1)
    monkeypatch.setattr(journal, "KEPT_BYTES", 3 * BATCH_BYTES)
    return Disk()


@pytest.fixture
def turns() -> Turns:
    return Turns()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(disk: Disk, turns: Turns, clock: Clock) -> LocalJournal:
    return LocalJournal.open(disk, turns.call_soon, segment_bytes=1, elapsed_seconds=clock)


def fill(turns: Turns, log: LocalJournal, first: int, end: int) -> None:
    """Write the batches of these numbers, each into a segment of its own."""
    for number in range(first, end):
        append(turns, log, batch(1, number, b"%04d" % number * (BATCH_BYTES // 4)))


def segments(disk: Disk) -> list[str]:
    """The names of the segments, the oldest first."""
    return sorted(name for name in disk.files if name.endswith(".log"))


def read_one(turns: Turns, log: LocalJournal, number: int) -> bytes:
    return read(turns, log, log.find(1, number, number + 1, 0))


def settled(turns: Turns, log: LocalJournal, disk: Disk) -> list[str]:
    """What was released once the threads have done all that they were asked for."""
    log.close()
    turns.drain()
    assert disk.open_handles == []
    return disk.released


def test_all_stays_where_memory_is_at_hand(disk: Disk, turns: Turns, log: LocalJournal) -> None:
    fill(turns, log, 0, 20)
    assert settled(turns, log, disk) == []


def test_the_oldest_leave_for_the_newest_where_it_is_not(
    disk: Disk, turns: Turns, log: LocalJournal, clock: Clock
) -> None:
    fill(turns, log, 0, 5)
    clock.step_s = 1.0
    fill(turns, log, 5, 10)
    whole = b"".join(b"%04d" % number * (BATCH_BYTES // 4) for number in range(10))
    assert read(turns, log, log.find(1, 0, 10, EVERYTHING)) == whole
    released = settled(turns, log, disk)
    # One for each that was written meanwhile.
    assert sorted(released) == segments(disk)[:5]


def test_so_much_stays_in_any_case(disk: Disk, turns: Turns, log: LocalJournal, clock: Clock) -> None:
    clock.step_s = 1.0
    fill(turns, log, 0, 10)
    assert sorted(settled(turns, log, disk)) == segments(disk)[: 9 - 3]


def test_what_is_read_again_stays_longer(disk: Disk, turns: Turns, log: LocalJournal, clock: Clock) -> None:
    fill(turns, log, 0, 5)
    assert read_one(turns, log, 0) == b"0000" * (BATCH_BYTES // 4)
    clock.step_s = 1.0
    fill(turns, log, 5, 7)
    assert read_one(turns, log, 1) == b"0001" * (BATCH_BYTES // 4)
    fill(turns, log, 7, 8)
    names = segments(disk)
    assert sorted(settled(turns, log, disk)) == [names[number] for number in (1, 2, 3)]


def test_what_was_released_and_is_read_may_be_released_once_more(
    disk: Disk, turns: Turns, log: LocalJournal, clock: Clock
) -> None:
    clock.step_s = 1.0
    fill(turns, log, 0, 6)
    turns.run_until(lambda: len(disk.released) == 1)
    read_one(turns, log, 0)
    fill(turns, log, 6, 16)
    assert settled(turns, log, disk).count(segments(disk)[0]) == 2


def test_advice_that_is_refused_does_no_harm(
    disk: Disk, turns: Turns, log: LocalJournal, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    disk.refuses = True
    clock.step_s = 1.0
    fill(turns, log, 0, 6)
    assert read_one(turns, log, 0) == b"0000" * (BATCH_BYTES // 4)
    settled(turns, log, disk)
    assert "could not be given back: no such advice" in caplog.text


def test_a_file_is_read_as_before_once_its_cache_is_let_go(tmp_path: Path) -> None:
    files, content = PosixFiles(tmp_path), os.urandom(MIB)
    handle = files.create("a")
    files.write(handle, [content], 0)
    files.sync_data(handle)
    files.release_cached(handle)
    assert files.read_nowait(handle, bytearray(MIB), 0) in (False, None)  # None: the file system cannot tell
    assert files.read(handle, MIB, 0) == content
    files.close(handle)
