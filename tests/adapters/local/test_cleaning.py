"""Cleaning on the disk: interrupted at every call it is finished or undone, and no fault of the disk loses a batch."""

import errno
import logging
from collections.abc import Iterator

import pytest

from exacta.adapters.local import LocalJournal
from exacta.adapters.local.damage.inspection import Finding, Verdict, inspect
from exacta.adapters.local.index.segment_index import HEADER_BYTES
from exacta.adapters.local.space import cleaning
from exacta.ports.journal import Buffer, Cleaned, Entry, Failed, JournalDamaged
from simulation.disk.simulated import Operation, SimulatedDisk
from tests.adapters.turns import Turns, append, batch, read

SEGMENT_BYTES = 1500
EVERYTHING = 1 << 40
END = range(24, 32)
"""What an index says of where its segment ends."""
COUNT = 30
FLOORS = ({1: 4, 2: 0}, {1: 9, 2: 2}, {1: 15, 2: 6}, {1: 16, 3: 0})
"""Of four cleanings, one after the other, from the middle and the front; at last stream 2 is gone, 3 has not come."""


def opened(disk: SimulatedDisk, turns: Turns) -> LocalJournal:
    return LocalJournal.open(disk, turns.call_soon, segment_bytes=SEGMENT_BYTES)


def data(stream: int, number: int) -> bytes:
    return b"%d:%02d;" % (stream, number) * 40


def append_some(turns: Turns, journal: LocalJournal, begin: int, end: int) -> None:
    """Append to two streams in turn; the first one has all of some segments to itself."""
    for number in range(begin, end):
        stream = 1 if number % 3 or number > 20 else 2
        offset = 1 + max((extent.last_offset for extent in journal.find(stream, 0, EVERYTHING, EVERYTHING)), default=-1)
        append(turns, journal, batch(stream, offset, data(stream, offset)))


def snapshot(turns: Turns, journal: LocalJournal) -> None:
    append(turns, journal, Entry(b"event"))
    assert turns.wait(lambda done: journal.save_snapshot(b"%d" % journal.position, journal.position, done)) is None


def clean(turns: Turns, journal: LocalJournal, floors: dict[int, int]) -> int:
    steps = 0
    while isinstance(result := turns.wait(lambda done: journal.clean(floors, done)), Cleaned) and result.freed_bytes:
        steps += 1
    return steps


def content(turns: Turns, journal: LocalJournal, floors: dict[int, int]) -> dict[int, bytes]:
    return {
        stream: read(turns, journal, journal.find(stream, floor, EVERYTHING, EVERYTHING))
        for stream, floor in floors.items()
    }


def play(disk: SimulatedDisk) -> list[Operation]:
    turns = Turns()
    journal = opened(disk, turns)
    append_some(turns, journal, 0, COUNT)
    for _ in range(2):
        snapshot(turns, journal)
    disk.note(("filled", content(turns, journal, {1: 0, 2: 0}), journal.position))
    for floors in FLOORS:
        disk.note(("floors", floors))
        assert clean(turns, journal, floors)
    journal.close()
    assert disk.open_handles == []
    return disk.log


@pytest.fixture(scope="module")
def history() -> list[Operation]:
    return play(SimulatedDisk())


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


def check(disk: SimulatedDisk, floors: dict[int, int], whole: dict[int, bytes], position: int) -> None:
    """Open what is left: all from the floors on is there; the directory holds nothing that is not needed."""
    turns = Turns()
    journal = opened(disk, turns)
    assert journal.position == position
    blob, events = journal.replay()
    assert blob == b"%d" % position
    assert list(events) == []
    size = len(data(1, 0))
    wanted = {stream: whole.get(stream, b"")[floor * size :] for stream, floor in floors.items()}
    assert content(turns, journal, floors) == wanted
    journal.close()
    assert disk.open_handles == []
    assert [found for found in inspect(disk) if isinstance(found, Finding)] == []
    segments = {name.removesuffix(".log") for name in disk.names() if name.endswith(".log")}
    assert {name.removesuffix(".index") for name in disk.names() if name.endswith(".index")} < segments
    assert not [name for name in disk.names() if name.endswith(".tmp")]


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
        floors = next(history[number][1][1] for number in reversed(notes) if number < length)  # type: ignore[index]
        disk = SimulatedDisk.after(history[:length])
        check(disk.restarted(), floors, whole, position)
        for keep in (False, True):
            crashed = disk.crashed(keep_sector=lambda _, keep=keep: keep, keep_names=keep_names)
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
        append(turns, journal, Entry(b"goes on"))
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
    found: list[list[Buffer] | Failed] = []
    cleaned: list[Cleaned | Failed] = []
    journal.clean(floors, cleaned.append)
    asked = 0
    while not cleaned:
        journal.read(journal.find(1, 4, EVERYTHING, EVERYTHING), found.append)
        asked += 1
        turns.turn()
    turns.run_until(lambda: len(found) == asked)
    assert all(isinstance(each, list) and b"".join(each) == wanted[1] for each in found)
    journal.close()
    assert disk.open_handles == []


def test_closing_does_not_wait_for_a_long_cleaning(
    filled: tuple[SimulatedDisk, Turns, LocalJournal], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, turns, journal = filled
    results: list[Cleaned | Failed] = []
    choose = cleaning.choose

    def close_meanwhile(*arguments: object) -> object:
        journal._cleaner.stop()
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
    assert journal.wants_snapshot
    assert turns.wait(lambda done: journal.fold_snapshot(joined, done)) is None
    assert clean(turns, journal, {1: 4, 2: 0})
    journal.close()
    assert opened(disk, turns).replay()[0] is not None


def test_a_fold_that_fails_is_wanted_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an idle journal nothing else would ever ask for it."""
    disk, turns = SimulatedDisk(), Turns()
    journal = opened(disk, turns)
    append_some(turns, journal, 0, COUNT)
    assert journal.wants_snapshot

    def fails(*arguments: object) -> None:
        raise OSError("no process left")

    with monkeypatch.context() as patch:
        patch.setattr(journal._aside, "run", fails)
        assert isinstance(turns.wait(lambda done: journal.fold_snapshot(joined, done)), Failed)
    assert journal.wants_snapshot
    assert turns.wait(lambda done: journal.fold_snapshot(joined, done)) is None
    assert not journal.wants_snapshot
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
    append(turns, journal, Entry(b"later"))
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


# --- what is missing afterwards ---------------------------------------------------------------------------------------


def names_of(disk: SimulatedDisk, suffix: str) -> list[str]:
    return sorted(name for name in disk.names() if name.endswith(suffix))


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_missing_segment_is_damage_after_a_cleaning_as_before(history: list[Operation], which: int) -> None:
    disk = SimulatedDisk.after(history)
    disk.remove(names_of(disk, ".log")[which])
    assert Verdict.DAMAGED in {found.verdict for found in inspect(disk) if isinstance(found, Finding)}
    with pytest.raises(JournalDamaged):
        opened(disk, Turns())


@pytest.mark.parametrize("content", [b"", b"nonsense", bytes(20)])
def test_an_unreadable_start_is_damage(history: list[Operation], content: bytes) -> None:
    disk = SimulatedDisk.after(history)
    disk.put("start", content)
    assert Finding("start", 0, "it is unreadable", Verdict.DAMAGED) in list(inspect(disk))
    with pytest.raises(JournalDamaged, match="start, byte 0: it is unreadable"):
        opened(disk, Turns())


def test_a_missing_start_is_damage(history: list[Operation]) -> None:
    disk = SimulatedDisk.after(history)
    disk.remove("start")
    with pytest.raises(JournalDamaged, match=r"0{20}\.log, byte 0: the segment is missing"):
        opened(disk, Turns())


def test_every_byte_of_a_cleaned_segment_is_checked_where_it_is_read_as_a_whole(history: list[Operation]) -> None:
    disk = SimulatedDisk.after(history)
    name = next(name for name in names_of(disk, ".log") if name.count(".") == 2)
    whole = disk.content(name)
    for at in range(0, len(whole), 7):
        broken = disk.restarted()
        changed = bytearray(whole)
        changed[at] ^= 0x10
        broken.put(name, bytes(changed))
        assert Verdict.DAMAGED in {found.verdict for found in inspect(broken) if isinstance(found, Finding)}, at
        broken.remove(name.replace(".log", ".index"))
        with pytest.raises(JournalDamaged):  # its index must be made again
            opened(broken, Turns())


def test_without_a_sound_snapshot_it_says_that_events_are_gone(history: list[Operation]) -> None:
    disk = SimulatedDisk.after(history)
    for put in (lambda name: disk.put(name, b"damaged"), disk.remove):
        for name in names_of(disk, ".snapshot"):
            put(name)
        journal = opened(disk, Turns())
        with pytest.raises(JournalDamaged, match="no sound snapshot"):
            journal.replay()
        journal.close()
        damaged = [found for found in inspect(disk) if isinstance(found, Finding) and found.verdict is Verdict.DAMAGED]
        assert [found.reason for found in damaged] == ["events are gone that no sound snapshot holds"]


def test_the_segment_index_of_a_cleaned_segment_is_made_again(history: list[Operation]) -> None:
    disk = SimulatedDisk.after(history)
    filled = next(operation[1] for operation in history if operation[0] == "note")
    assert isinstance(filled, tuple)
    for name in names_of(disk, ".index"):
        before = disk.content(name)
        for content in (b"", before[:-8], before[:-1] + b"\1"):
            disk.put(name, content)
            check(disk, FLOORS[-1], filled[1], filled[2])
            assert disk.content(name) == before


def test_by_an_altered_index_nothing_is_removed():
    """A bit of each byte of the first index flips, and of the headers of all; then much is deleted.

    Stream 3 has one batch in the middle: where its index hides that, its neighbours must not be taken for neighbours.
    """
    disk, turns = SimulatedDisk(), Turns()
    journal = opened(disk, turns)
    offsets = {1: 0, 2: 0, 3: 0}
    for number in range(COUNT):
        stream = 3 if number == COUNT // 2 else 1 + number % 2
        append(turns, journal, batch(stream, offsets[stream], data(stream, offsets[stream])))
        offsets[stream] += 1
    for _ in range(2):
        snapshot(turns, journal)
    whole = content(turns, journal, dict.fromkeys(offsets, 0))
    turns.run_until(lambda: all(segment.index for segment in journal._segments[:-1]))
    names = [segment.index_name for segment in journal._segments[:-1]]
    journal.close()
    places = [(names[0], byte) for byte in range(HEADER_BYTES, len(disk.content(names[0])))]
    places += [(name, byte) for name in names for byte in range(HEADER_BYTES)]
    stopped = 0
    for name, byte in places:
        for floors in ({3: 0}, {2: 2, 3: 0}, {1: 0, 2: 0, 3: 0}):
            lives = disk.restarted()
            turns = Turns()
            journal = opened(lives, turns)
            damage: list[Failed] = []
            journal.on_failure(damage.append)
            lives.rot(name, byte, byte % 8)
            clean(turns, journal, floors)
            turns.drain()
            stopped += bool(damage)
            assert all(f"{name} is damaged" in each.reason for each in damage)
            assert damage or byte not in END or name == names[-1], (name, byte)
            journal.close()
            journal = opened(lives.restarted(), turns)
            kept = content(turns, journal, floors)
            journal.close()
            for stream, floor in floors.items():
                wanted = len(whole[stream]) - floor * len(data(stream, 0))
                assert (len(kept[stream]), whole[stream].endswith(kept[stream])) == (wanted, True), (name, byte)
    assert stopped > len(places)
