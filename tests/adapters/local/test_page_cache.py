"""Where it is dear to let the page cache grow, the log gives back what was used least recently (decision 0024)."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import exacta
from exacta.adapters.local import LocalJournal, journal, page_cache
from exacta.adapters.local.files import PosixFiles
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.page_cache import (
    DEAR_S_PER_BYTE,
    LARGE_BYTES,
    MEASURED_BYTES,
    SEGMENTS_IN_VAIN,
    SEGMENTS_LET_BE,
    SEGMENTS_REFUSED,
    Growth,
)
from exacta.adapters.local.reading import Reader
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.turns import Turns, append, batch, read

EVERYTHING = 1 << 40
BATCH_BYTES = 1_000
MIB = 1 << 20


class TestGrowth:
    def segment(self, growth: Growth, s_per_byte: float, size: int = LARGE_BYTES, total: int = MEASURED_BYTES) -> bool:
        """Write a segment in groups of one size, and judge it."""
        for _ in range(total // size):
            growth.took(size, size * s_per_byte)
        return growth.is_refused(can_give_back=True)

    def test_it_is_welcome_where_it_costs_little(self) -> None:
        growth = Growth()
        assert not growth.is_refused(can_give_back=True)
        assert not any(self.segment(growth, DEAR_S_PER_BYTE * 0.99) for _ in range(3))

    def test_it_is_refused_for_a_while_where_it_is_dear_and_then_tried_again(self) -> None:
        growth = Growth()
        for _ in range(2):
            assert self.segment(growth, DEAR_S_PER_BYTE * 1.01)
            for _ in range(SEGMENTS_REFUSED - 1):
                assert self.segment(growth, 0.0)
            assert not self.segment(growth, 0.0)
        assert not self.segment(growth, 0.0)

    def test_it_is_let_be_where_refusing_it_is_in_vain(self) -> None:
        growth = Growth()
        for _ in range(2):
            assert self.segment(growth, 1.0)
            for _ in range(SEGMENTS_IN_VAIN - 1):
                assert self.segment(growth, 1.0)
            assert not any(self.segment(growth, 1.0) for _ in range(SEGMENTS_LET_BE + 1))

    def test_a_dear_one_now_and_then_is_not_in_vain(self) -> None:
        growth = Growth()
        assert self.segment(growth, 1.0)
        judged = [self.segment(growth, float(number % SEGMENTS_IN_VAIN != 0)) for number in range(SEGMENTS_REFUSED)]
        assert judged == [True] * (SEGMENTS_REFUSED - 1) + [False]

    def test_nothing_is_judged_where_nothing_can_be_given_back(self) -> None:
        growth = Growth()
        for _ in range(SEGMENTS_IN_VAIN + 2):
            growth.took(MEASURED_BYTES, 1.0)
            assert not growth.is_refused(can_give_back=False)
        assert not self.segment(growth, 0.0), "it was added up"
        for _ in range(SEGMENTS_IN_VAIN):
            assert self.segment(growth, 1.0), "it was held in vain before"

    def test_segments_of_small_groups_are_not_refused_and_do_not_count(self) -> None:
        growth = Growth()
        assert self.segment(growth, 1.0)
        assert not any(self.segment(growth, 1.0, total=MIB) for _ in range(100))
        assert self.segment(growth, 0.0)

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
    monkeypatch.setattr(page_cache, "SEGMENTS_IN_VAIN", EVERYTHING)
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
    return open_journal(disk, turns.call_soon, segment_bytes=1, trims_page_cache=True, busy_seconds=clock)


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


def test_all_stays_unless_trimming_is_asked_for(disk: Disk, turns: Turns, clock: Clock) -> None:
    clock.step_s = 1.0
    log = open_journal(disk, turns.call_soon, segment_bytes=1, busy_seconds=clock)
    fill(turns, log, 0, 10)
    assert settled(turns, log, disk) == []


@pytest.mark.parametrize("trims", [False, True])
def test_a_broker_trims_only_if_its_option_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trims: bool
) -> None:
    made: list[Growth] = []

    def make() -> Growth:
        made.append(Growth())
        return made[-1]

    monkeypatch.setattr(journal, "Growth", make)
    with exacta.Broker(tmp_path, config={"log.page.cache.trim.enable": True} if trims else {}):
        assert len(made) == trims


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


def test_a_machine_without_any_memory_at_hand_keeps_as_much(
    disk: Disk, turns: Turns, log: LocalJournal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_cache, "SEGMENTS_IN_VAIN", SEGMENTS_IN_VAIN)
    monkeypatch.setattr(journal, "KEPT_BYTES", 10 * BATCH_BYTES)
    clock.step_s = 1.0
    fill(turns, log, 0, 12)
    assert sorted(settled(turns, log, disk)) == segments(disk)[: 11 - 9]


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
    turns.run_until(lambda: segments(disk)[0] in disk.released)
    read_one(turns, log, 0)
    fill(turns, log, 6, 16)
    assert settled(turns, log, disk).count(segments(disk)[0]) == 2


class HeldJobs:
    """Threads that do nothing until they are told to."""

    def __init__(self, name: str, threads: int) -> None:
        self.held: list[Callable[[], None]] = []

    def submit(self, job: Callable[[], None]) -> None:
        self.held.append(job)

    def close(self) -> None:
        while self.held:
            self.held.pop(0)()


@pytest.fixture
def jobs() -> HeldJobs:
    return HeldJobs("", 1)


@pytest.fixture
def reader(disk: Disk, turns: Turns, jobs: HeldJobs) -> Reader:
    return Reader(disk, turns.call_soon, lambda name, threads: jobs)


def sealed_segment(disk: Disk, reader: Reader, base: int, size: int) -> Segment:
    segment = Segment(base)
    segment.size = size
    segment.handle = disk.create(segment.name)
    reader.seal(segment)
    return segment


def test_a_segment_that_is_no_more_is_closed_once_its_cache_was_let_go(
    disk: Disk, turns: Turns, jobs: HeldJobs, reader: Reader
) -> None:
    segment = sealed_segment(disk, reader, 0, 100)
    retired: list[bool] = []
    reader.release(100, 0)
    reader.retire([segment], lambda: retired.append(True))
    assert (disk.open_handles, retired) == ([segment.name], [])
    jobs.held.pop()()
    turns.drain()
    assert (disk.open_handles, retired, disk.released) == ([], [True], [segment.name])


def test_segments_leave_whole_and_the_difference_counts_the_next_time(
    disk: Disk, jobs: HeldJobs, reader: Reader
) -> None:
    for base, size in enumerate((100, 100, 100, 10, 10, 1_000)):
        sealed_segment(disk, reader, base, size)
    left = []
    for wanted in (50, 1, 60, 100, 20, 1_000):
        reader.release(wanted, 900)
        left.append(len(jobs.held))
    # 50 are no more than half of the first; 51 take it, and 49 less are wanted then. With 11 and with 31 nothing goes,
    # with 111 the second. Of the last 1,031 the largest would leave less than is kept.
    assert left == [0, 1, 1, 2, 2, 5]


def test_advice_that_is_refused_does_no_harm(
    disk: Disk, turns: Turns, log: LocalJournal, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    disk.refuses = True
    clock.step_s = 1.0
    fill(turns, log, 0, 6)
    assert read_one(turns, log, 0) == b"0000" * (BATCH_BYTES // 4)
    settled(turns, log, disk)
    assert "could not be given back: no such advice" in caplog.text


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system takes no such advice")
def test_a_file_is_read_as_before_once_its_cache_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []
    advise = os.posix_fadvise

    def noted(*advice: int) -> None:
        asked.append(advice)
        advise(*advice)

    monkeypatch.setattr(os, "posix_fadvise", noted)
    files, content = PosixFiles(tmp_path), os.urandom(MIB)
    handle = files.create("a")
    files.write(handle, [content], 0)
    files.sync_data(handle)
    files.release_cached(handle)
    files.release_cached(handle)
    assert files.read(handle, MIB, 0) == content
    assert asked == [(handle, 0, 0, os.POSIX_FADV_DONTNEED)] * 2
    files.close(handle)
