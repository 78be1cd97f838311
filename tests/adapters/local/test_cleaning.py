"""Cleaning on the disk: interrupted at every call it is finished or undone, and no fault of the disk loses a batch."""

import errno
import logging
from collections.abc import Iterator

import pytest

from exacta.adapters.local import LocalJournal
from exacta.adapters.local.space import cleaning
from exacta.ports.journal import Buffer, Cleaned, Failed, JournalEntry
from simulation.disk.simulated import Operation, SimulatedDisk
from tests.adapters.local.cleanings import (
    COUNT,
    EVERYTHING,
    FLOORS,
    SEGMENT_BYTES,
    append_some,
    check,
    clean,
    content,
    data,
    names_of,
    opened,
    play,
    snapshot,
)
from tests.adapters.turns import Turns, append, batch, wants_snapshot
from tests.sectors import all_or_none


@pytest.fixture(scope="module")
def history() -> list[Operation]:
    return play(SimulatedDisk())


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


def test_the_history_has_what_it_is_meant_for(history: list[Operation]) -> None:
    renamed = [operation[2] for operation in history if operation[0] == "rename"]
    assert "start" in renamed
    assert sum(name.endswith(".1.log") for name in renamed) >= 2
    assert any(name.endswith(".2.log") for name in renamed)
    removed = [operation[1] for operation in history if operation[0] == "remove"]
    assert sum(name.endswith(".log") for name in removed) >= 5


@pytest.mark.parametrize("keep_names", [False, True])
def test_a_crash_after_any_call_is_finished_or_undone(history: list[Operation], keep_names: bool) -> None:
    notes = [number for number, operation in enumerate(history) if operation[0] == "note"]
    filled = history[notes[0]][1]
    assert isinstance(filled, tuple)
    _, whole, position = filled
    for length in range(notes[1] + 1, len(history) + 1):
        floors = next(history[number][1][1] for number in reversed(notes) if number < length)
        disk = SimulatedDisk.after(history[:length])
        check(disk.restarted(), floors, whole, position)
        for keep in (False, True):
            crashed = disk.crashed(keep_sector=all_or_none(keep), keep_names=keep_names)
            check(crashed, floors, whole, position)
            if keep:  # recovery removes what is left over: cut that short, too
                again = SimulatedDisk.after(crashed.log[:-2]).crashed(keep_names=keep_names)
                check(again, floors, whole, position)


@pytest.fixture
def filled() -> tuple[SimulatedDisk, Turns, LocalJournal]:
    disk, turns = SimulatedDisk(), Turns()
    journal = opened(disk, turns)
    append_some(turns, journal, 0, COUNT)
    for _ in range(2):
        snapshot(turns, journal)
    return disk, turns, journal


def test_a_full_disk_loses_nothing(filled: tuple[SimulatedDisk, Turns, LocalJournal]) -> None:
    disk, turns, journal = filled
    floors = {1: 4, 2: 0}
    before = content(turns, journal, floors)
    names = set(disk.names())
    disk.free_bytes = 700
    result = turns.wait(lambda done: journal.clean(floors, done))
    assert isinstance(result, Failed)
    assert "no space" in result.reason
    assert set(disk.names()) == names
    disk.free_bytes = 1 << 30
    assert clean(turns, journal, floors)
    assert content(turns, journal, floors) == before
    journal.close()


def test_a_cleaning_leaves_producers_the_last_of_the_disk(filled: tuple[SimulatedDisk, Turns, LocalJournal]) -> None:
    """A batch that does not fit would end the broker."""
    disk, turns, journal = filled
    disk.free_bytes = enough = 2 * SEGMENT_BYTES - 100  # for what is left of a segment, not for one more besides
    assert isinstance(turns.wait(lambda done: journal.clean({1: 4, 2: 0}, done)), Failed)
    assert disk.free_bytes == enough
    assert clean(turns, journal, {}), "what is only dropped needs no room"
    journal.close()


@pytest.mark.parametrize(("call", "number"), [("create", errno.EMFILE), ("write", errno.ENOSPC), ("sync", errno.EIO)])
def test_a_start_that_could_not_be_written_is_written_later(
    filled: tuple[SimulatedDisk, Turns, LocalJournal], call: str, number: int
) -> None:
    disk, turns, journal = filled
    disk.failing[call] = number
    assert isinstance(turns.wait(lambda done: journal.clean({}, done)), Failed)
    del disk.failing[call]
    assert clean(turns, journal, {})
    journal.close()


def test_an_index_that_could_not_be_written_is_written_later() -> None:
    disk, turns = SimulatedDisk(), Turns()
    journal = opened(disk, turns)
    create = disk.create

    def full(name: str, *, exclusive: bool = False) -> int:
        if name.endswith(".index.tmp"):
            raise OSError(errno.ENOSPC, "no space left")
        return create(name, exclusive=exclusive)

    disk.create = full  # type: ignore[method-assign]
    append_some(turns, journal, 0, COUNT)
    snapshot(turns, journal)
    disk.create = create  # type: ignore[method-assign]
    snapshot(turns, journal)
    first = turns.wait(lambda done: journal.clean({}, done))
    assert isinstance(first, Cleaned)
    assert first.may_free_more
    assert clean(turns, journal, {})
    assert len(names_of(disk, ".log")) == 1
    journal.close()


def test_nothing_is_asked_of_a_closed_journal(filled: tuple[SimulatedDisk, Turns, LocalJournal]) -> None:
    _, turns, journal = filled
    results: list[Cleaned | Failed] = []
    journal.clean({}, results.append)
    turns.turn()  # changed over; the removal is under way
    journal.close()
    turns.drain()
    assert results == []


@pytest.mark.parametrize("call", ["create", "write", "sync", "rename", "sync_directory", "remove", "read", "open"])
def test_a_failing_call_loses_nothing(filled: tuple[SimulatedDisk, Turns, LocalJournal], call: str) -> None:
    """Neither then nor when it is cleaned again, now or in the next life."""
    disk, turns, journal = filled
    for floors in FLOORS[:2]:
        before = content(turns, journal, floors)
        disk.failing[call] = errno.EIO
        result = turns.wait(lambda done, floors=floors: journal.clean(floors, done))
        assert isinstance(result, Failed) or call == "remove"
        del disk.failing[call]
        assert content(turns, journal, floors) == before
        append(turns, journal, JournalEntry(b"goes on"))
        clean(turns, journal, floors)
        assert content(turns, journal, floors) == before
        for next_disk in (disk.restarted(), disk.crashed(), disk.crashed(keep_names=True)):
            next_turns = Turns()
            next_journal = opened(next_disk, next_turns)
            assert content(next_turns, next_journal, floors) == before
            clean(next_turns, next_journal, floors)
            assert content(next_turns, next_journal, floors) == before
            next_journal.close()
    journal.close()


def test_a_damaged_batch_gets_no_new_checksum(filled: tuple[SimulatedDisk, Turns, LocalJournal]) -> None:
    disk, turns, journal = filled
    name = sorted(name for name in disk.names() if name.endswith(".log"))[0]
    content_before = bytearray(disk.content(name))
    content_before[-5] ^= 1
    disk.put(name, bytes(content_before))
    result = turns.wait(lambda done: journal.clean({1: 3, 2: 0}, done))
    assert isinstance(result, Failed)
    assert name in result.reason
    assert disk.content(name) == bytes(content_before)
    journal.close()


def test_who_reads_gets_what_it_asked_for_though_its_segment_is_cleaned(
    filled: tuple[SimulatedDisk, Turns, LocalJournal],
) -> None:
    disk, turns, journal = filled
    journal.close()
    journal = opened(disk, turns)
    floors = {1: 4, 2: 0}
    wanted = content(turns, journal, floors)
    journal.close()
    disk.nowait = False
    journal = opened(disk, turns)
    found: list[list[Buffer | Failed]] = []
    cleaned: list[Cleaned | Failed] = []
    journal.clean(floors, cleaned.append)
    asked = 0
    while not cleaned:
        journal.read(journal.find(1, 4, EVERYTHING, EVERYTHING), found.append)
        asked += 1
        turns.turn()
    turns.run_until(lambda: len(found) == asked)
    buffers = [[part for part in each if not isinstance(part, Failed)] for each in found]
    assert buffers == found
    assert all(b"".join(each) == wanted[1] for each in buffers)
    journal.close()
    assert disk.open_handles == []


def test_closing_does_not_wait_for_a_long_cleaning(
    filled: tuple[SimulatedDisk, Turns, LocalJournal], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, turns, journal = filled
    results: list[Cleaned | Failed] = []
    choose = cleaning.choose

    def close_meanwhile(*arguments: object) -> object:
        journal._rewrites.stop()
        return choose(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(cleaning, "choose", close_meanwhile)
    journal.clean({1: 4, 2: 0}, results.append)
    journal.close()
    turns.drain()
    assert results == []
    assert not [name for name in disk.names() if ".1." in name or name.endswith(".tmp")]


def joined(blob: bytes | None, events: Iterator[bytes]) -> bytes:
    return b"+".join([*([] if blob is None else [blob]), *events])


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Note each look for what is worth cleaning."""
    looks: list[object] = []
    choose = cleaning.choose

    def counted(*arguments: object) -> object:
        looks.append(arguments)
        return choose(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(cleaning, "choose", counted)
    return looks


def test_an_idle_journal_is_cleaned_behind_one_fold(looks: list[object]) -> None:
    """It makes two snapshots, since nothing may come for which there could be another; but nobody looks till then."""
    disk, turns = SimulatedDisk(), Turns()
    journal = opened(disk, turns)
    append_some(turns, journal, 0, COUNT)
    snapshot(turns, journal)
    turns.run_until(lambda: all(segment.index for segment in journal._segments[:-1]))
    results = [turns.wait(lambda done: journal.clean({1: 4, 2: 0}, done)) for _ in range(3)]
    assert results == [Cleaned(0, may_free_more=True)] * 3
    assert len(looks) == 2, "once at what two snapshots are behind, once at all"
    assert wants_snapshot(journal)
    assert turns.wait(lambda done: journal.fold_snapshot(joined, done)) is None
    assert clean(turns, journal, {1: 4, 2: 0})
    journal.close()
    assert opened(disk, turns).replay()[0] is not None


def test_a_fold_that_fails_is_wanted_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an idle journal nothing else would ever ask for it."""
    disk, turns = SimulatedDisk(), Turns()
    journal = opened(disk, turns)
    append_some(turns, journal, 0, COUNT)
    assert wants_snapshot(journal)

    def fails(*arguments: object) -> None:
        raise OSError("no process left")

    with monkeypatch.context() as patch:
        patch.setattr(journal._job_runner, "run", fails)
        assert isinstance(turns.wait(lambda done: journal.fold_snapshot(joined, done)), Failed)
    assert wants_snapshot(journal)
    assert turns.wait(lambda done: journal.fold_snapshot(joined, done)) is None
    assert not wants_snapshot(journal)
    journal.close()


def test_a_fold_begins_at_the_latest_snapshot_though_two_of_one_segment_are_there() -> None:
    """What is before them may be cleaned of its events: nothing older can be made from these."""
    disk, turns = SimulatedDisk(), Turns()
    journal = opened(disk, turns)
    append_some(turns, journal, 0, COUNT)
    turns.run_until(lambda: all(segment.index for segment in journal._segments[:-1]))
    snapshot(turns, journal)
    snapshot(turns, journal)
    latest = journal.position
    assert clean(turns, journal, {1: 4, 2: 0})
    assert journal._segments[-1].base < latest
    append(turns, journal, JournalEntry(b"later"))
    assert turns.wait(lambda done: journal.fold_snapshot(joined, done)) is None
    journal.close()
    assert opened(disk, turns).replay()[0] == b"%d+later" % latest


def test_years_of_cleaning_leave_few_files() -> None:
    disk, turns = SimulatedDisk(), Turns()
    journal = opened(disk, turns)
    most = 0
    for number in range(120):
        # One batch in forty is kept for ever, in a stream of its own.
        append(turns, journal, batch(1, number, bytes(400)))
        if number % 40 == 0:
            append(turns, journal, batch(2, number, data(2, number)))
        if number % 10 == 9:
            snapshot(turns, journal)
            snapshot(turns, journal)
            clean(turns, journal, {1: number + 1, 2: 0})
            most = max(most, sum(name.endswith(".log") for name in disk.names()))
    assert most <= 5
    wanted = b"".join(data(2, number) for number in range(0, 120, 40))
    assert content(turns, journal, {2: 0})[2] == wanted
    journal.close()
    journal = opened(disk, turns)
    assert content(turns, journal, {2: 0})[2] == wanted
    journal.close()
