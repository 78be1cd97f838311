"""Compaction on the disk: interrupted at every call it is done or not done, and no fault of the disk loses a key."""

import errno
import logging
from collections.abc import Mapping
from functools import partial
from itertools import pairwise

import pytest

from exacta.adapters.local import LocalJournal
from exacta.adapters.local.damage.inspection import Finding, Verdict, inspect
from exacta.adapters.local.damage.repair import put_in_place
from exacta.adapters.local.damage.repair_copy import Plan, write_copy
from exacta.adapters.local.damage.surveyor import survey
from exacta.adapters.local.space import compaction_plan, compaction_writer
from exacta.ports.journal import CompactionOrder, Failed, Joining, JournalDamaged, JournalEntry
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import Operation, SimulatedDisk
from tests.adapters.compacting import RULES, keyed, keys_of, last_of_each_key
from tests.adapters.local.cleanings import SEGMENT_BYTES, clean, opened, snapshot
from tests.adapters.turns import Turns, append, first_offset, read
from tests.sectors import all_or_none
from tests.shares import share_of

EVERYTHING = 1 << 40
KEYS = "abcd"
ROUNDS = 3
FLOORS = {1: 0, 2: 0, 3: 0}

Found = dict[int, list[tuple[int, str]]]


def found(turns: Turns, journal: LocalJournal) -> Found:
    return {
        stream: list(keys_of(read(turns, journal, journal.find(stream, 0, EVERYTHING, EVERYTHING))))
        for stream in FLOORS
    }


def sealed(turns: Turns, journal: LocalJournal) -> None:
    journal.seal()
    append(turns, journal, JournalEntry(b"begins another segment"))
    turns.run_until(lambda: all(segment.index for segment in journal._segments[:-1]))


def compact(turns: Turns, journal: LocalJournal, *streams: int, floors: Mapping[int, int] = FLOORS) -> Failed | None:
    orders = [CompactionOrder(stream, EVERYTHING, RULES) for stream in streams]
    return turns.wait(lambda done: journal.compact(orders, floors, last_of_each_key, done))


def play(disk: SimulatedDisk) -> list[Operation]:
    """Compact stream 1 in every round, stream 2 in the first alone, stream 3 never; clean behind two snapshots."""
    turns = Turns()
    journal = opened(disk, turns)
    for number in range(ROUNDS):
        for offset in range(number * 10, number * 10 + 10):
            append(turns, journal, *(keyed(stream, offset, KEYS[offset % 4]) for stream in FLOORS))
        sealed(turns, journal)
        disk.note(("compacting", found(turns, journal)))
        assert compact(turns, journal, *((1, 2) if number == 0 else (1,))) is None
        disk.note(("compacted", found(turns, journal)))
        for _ in range(2):
            snapshot(turns, journal)
        disk.note(("cleaning", found(turns, journal)))
        assert clean(turns, journal, FLOORS) or number, "later most of a segment is alive"
        disk.note(("cleaned", found(turns, journal)))
    journal.close()
    assert disk.open_handles == []
    return disk.log


@pytest.fixture(scope="module")
def history() -> list[Operation]:
    return play(SimulatedDisk())


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


def check(disk: SimulatedDisk, allowed: list[Found]) -> None:
    """Open what is left: it is one of these; then it can be compacted and cleaned, and holds nothing needless."""
    turns = Turns()
    journal = opened(disk, turns)
    list(journal.replay()[1])
    assert found(turns, journal) in allowed
    assert not [name for name in disk.names() if name.endswith(".tmp")]
    assert [each for each in inspect(disk) if isinstance(each, Finding)] == []
    last = {stream: keys[-4:] for stream, keys in found(turns, journal).items()}
    sealed(turns, journal)
    assert compact(turns, journal, 1, 2) is None
    after = found(turns, journal)
    assert (after[1], after[2]) == (last[1], last[2])
    compacted = sum(name.startswith("compacted-") and name.endswith(".log") for name in disk.names())
    journal.close()
    assert disk.open_handles == []
    assert compacted <= 2
    assert [each for each in inspect(disk) if isinstance(each, Finding)] == []


def test_the_history_has_what_it_is_meant_for(history: list[Operation]) -> None:
    notes = [operation[1] for operation in history if operation[0] == "note"]
    states = dict(notes)
    assert states["cleaned"] == {
        1: [(26, "c"), (27, "d"), (28, "a"), (29, "b")],
        2: [(6, "c"), (7, "d"), (8, "a"), (9, "b"), *((offset, KEYS[offset % 4]) for offset in range(10, 30))],
        3: [(offset, KEYS[offset % 4]) for offset in range(30)],
    }
    removed = [operation[1] for operation in history if operation[0] == "remove"]
    assert sum(str(name).startswith("compacted-") for name in removed) >= 2


@pytest.mark.parametrize("keep_names", [False, True])
def test_a_crash_after_any_call_leaves_it_done_or_not_done(history: list[Operation], keep_names: bool) -> None:
    notes = [number for number, operation in enumerate(history) if operation[0] == "note"]
    for begin, end in pairwise(notes):
        (name, before), (_, after) = history[begin][1], history[end][1]
        if name not in {"compacting", "cleaning"}:
            continue
        allowed = [before, after]
        for length in share_of(range(begin + 1, end + 1)):
            disk = SimulatedDisk.after(history[:length])
            check(disk.restarted(), allowed)
            for keep in (False, True):
                check(disk.crashed(keep_sector=all_or_none(keep), keep_names=keep_names), allowed)
            recovered = disk.crashed(keep_sector=lambda _: True, keep_names=keep_names)
            opened(recovered, Turns()).close()
            check(SimulatedDisk.after(recovered.log[:-2]).crashed(keep_names=keep_names), allowed)


@pytest.fixture
def filled() -> tuple[SimulatedDisk, Turns, LocalJournal]:
    disk, turns = SimulatedDisk(), Turns()
    journal = opened(disk, turns)
    for offset in range(20):
        append(turns, journal, *(keyed(stream, offset, KEYS[offset % 4]) for stream in FLOORS))
    sealed(turns, journal)
    return disk, turns, journal


@pytest.mark.parametrize("call", ["create", "write", "sync", "rename", "sync_directory", "remove", "read", "open"])
def test_a_failing_call_loses_nothing(filled: tuple[SimulatedDisk, Turns, LocalJournal], call: str) -> None:
    """Neither then nor when it is compacted again, now or in the next life."""
    disk, turns, journal = filled
    assert compact(turns, journal, 1) is None
    before = found(turns, journal)
    disk.failing[call] = errno.EIO
    result = compact(turns, journal, 2, 3)
    assert isinstance(result, Failed) or call == "remove"
    del disk.failing[call]
    append(turns, journal, JournalEntry(b"goes on"))
    now = found(turns, journal)
    after = {1: before[1], 2: before[2][-4:], 3: before[3][-4:]}
    assert now == (after if result is None else before)
    for next_disk in (disk.restarted(), disk.crashed(), disk.crashed(keep_names=True)):
        check(next_disk, [before, after])
    compact(turns, journal, 2)
    assert found(turns, journal)[2][-4:] == after[2]
    journal.close()


def test_a_full_disk_keeps_what_there_is(filled: tuple[SimulatedDisk, Turns, LocalJournal]) -> None:
    disk, turns, journal = filled
    before, names = found(turns, journal), set(disk.names())
    disk.free_bytes = 700
    result = compact(turns, journal, 1)
    assert isinstance(result, Failed)
    assert "no space" in result.reason
    assert found(turns, journal) == before
    assert set(disk.names()) == names
    journal.close()


def alter(disk: SimulatedDisk, name: str, at: int) -> None:
    """Let one byte of a file be another one."""
    whole = disk.content(name)
    disk.put(name, whole[:at] + b"\0" + whole[at + 1 :])


def tells_of(offset: int, result: Failed | None) -> None:
    """Check that a compaction has failed over a batch of stream 1."""
    assert isinstance(result, Failed)
    assert f"offset {offset} of partition id 1" in result.reason


@pytest.mark.parametrize("streams", [(1,), (2,)])
def test_a_damaged_batch_gets_no_new_checksum(
    filled: tuple[SimulatedDisk, Turns, LocalJournal], streams: tuple[int, ...]
) -> None:
    """Whether its stream is compacted, or was, and is carried along."""
    disk, turns, journal = filled
    assert compact(turns, journal, 1, 2) is None
    append(turns, journal, *(keyed(stream, 20, "a") for stream in FLOORS))
    sealed(turns, journal)
    name = next(name for name in disk.names() if name.startswith("compacted-") and name.endswith(".log"))
    alter(disk, name, disk.content(name).index(b"16:a=") + 10)  # of stream 1, which is first
    tells_of(16, compact(turns, journal, *streams))
    journal.close()


def test_more_keys_than_memory_should_hold_are_compacted_in_turns(
    filled: tuple[SimulatedDisk, Turns, LocalJournal], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, turns, journal = filled
    whole = found(turns, journal)
    monkeypatch.setattr(compaction_writer, "BYTES_PER_KEY", compaction_writer.KEY_BYTES // 8)
    assert compact(turns, journal, 1, 2) is None
    assert found(turns, journal) == {1: whole[1][-4:], 2: whole[2][-4:], 3: whole[3]}
    assert not [name for name in disk.names() if name.endswith(".tmp")]
    journal.close()


def join(turns: Turns, journal: LocalJournal) -> Failed | None:
    """Compact streams 1 and 2, with stream 3 at the end of the first."""
    orders = [CompactionOrder(1, 40, RULES, [Joining(3, 20, 9, 4000)]), CompactionOrder(2, 20, RULES)]
    return turns.wait(lambda done: journal.compact(orders, FLOORS, last_of_each_key, done))


def test_a_damaged_batch_whose_keys_cannot_be_noted_is_told(filled: tuple[SimulatedDisk, Turns, LocalJournal]) -> None:
    disk, turns, journal = filled
    name = next(name for name in disk.names() if b"13:b=vvv" in disk.content(name))
    alter(disk, name, disk.content(name).index(b"13:b="))
    tells_of(13, compact(turns, journal, 1))
    journal.close()


def test_a_damaged_batch_of_a_stream_that_is_joining_gets_no_new_checksum(
    filled: tuple[SimulatedDisk, Turns, LocalJournal],
) -> None:
    disk, turns, journal = filled
    name = next(name for name in disk.names() if b"13:b=vvv" in disk.content(name))
    alter(disk, name, disk.content(name).rindex(b"13:b=") + 10)  # of stream 3, which is last
    tells_of(33, join(turns, journal))
    journal.close()


def test_streams_join_in_turns_as_well(
    filled: tuple[SimulatedDisk, Turns, LocalJournal], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are too many keys for memory, a batch that has joined is moved once."""
    _, turns, journal = filled
    whole = found(turns, journal)
    monkeypatch.setattr(compaction_writer, "BYTES_PER_KEY", compaction_writer.KEY_BYTES // 8)
    assert join(turns, journal) is None
    joined = [(offset + 20, key) for offset, key in whole[3][-4:]]
    assert found(turns, journal) == {1: joined, 2: whole[2][-4:], 3: whole[3]}
    journal.close()


@pytest.fixture
def compacted(filled: tuple[SimulatedDisk, Turns, LocalJournal]) -> SimulatedDisk:
    disk, turns, journal = filled
    assert compact(turns, journal, 1, 2) is None
    journal.close()
    return disk


def refuses(disk: SimulatedDisk, name: str) -> None:
    with pytest.raises(JournalDamaged, match=name):
        opened(disk.restarted(), Turns())
    findings = [each for each in inspect(disk.restarted()) if isinstance(each, Finding)]
    assert any(each.name == name and each.verdict is Verdict.DAMAGED for each in findings)


def test_a_compacted_segment_that_is_missing_is_noticed(compacted: SimulatedDisk) -> None:
    name = next(name for name in compacted.names() if name.startswith("compacted-") and name.endswith(".log"))
    compacted.remove(name)
    refuses(compacted, name)


def test_one_that_is_cut_is_noticed(compacted: SimulatedDisk) -> None:
    name = next(name for name in compacted.names() if name.startswith("compacted-") and name.endswith(".log"))
    compacted.put(name, compacted.content(name)[:-1])
    refuses(compacted, name)


def test_the_list_of_them_that_is_damaged_is_noticed(compacted: SimulatedDisk) -> None:
    content = bytearray(compacted.content("compacted"))
    content[-1] ^= 1
    compacted.put("compacted", bytes(content))
    refuses(compacted, "compacted")


def test_every_flipped_bit_of_it_is_found(compacted: SimulatedDisk) -> None:
    name = next(name for name in compacted.names() if name.startswith("compacted-") and name.endswith(".log"))
    whole = compacted.content(name)
    for at in share_of(range(0, len(whole), 7)):
        flipped = bytearray(whole)
        flipped[at] ^= 4
        compacted.put(name, bytes(flipped))
        findings = [each for each in inspect(compacted.restarted()) if isinstance(each, Finding)]
        assert any(each.name == name for each in findings), at


@pytest.mark.parametrize("damage", ["missing", "flipped"])
def test_an_index_of_it_is_made_again(compacted: SimulatedDisk, damage: str) -> None:
    name = next(name for name in compacted.names() if name.startswith("compacted-") and name.endswith(".index"))
    whole = compacted.content(name)
    if damage == "missing":
        compacted.remove(name)
    else:
        compacted.put(name, whole[:60] + bytes([whole[60] ^ 1]) + whole[61:])
    turns = Turns()
    journal = opened(compacted, turns)
    assert found(turns, journal)[1] == [(offset, KEYS[offset % 4]) for offset in range(16, 20)]
    assert compacted.content(name) == whole
    journal.close()


def test_what_a_repair_leaves_of_a_compacted_segment_may_end_within_another_segment(compacted: SimulatedDisk) -> None:
    """The batches behind that end are found once, and compacted once."""
    disk, turns = compacted, Turns()
    name = next(name for name in disk.names() if name.startswith("compacted-") and name.endswith(".log"))
    whole = disk.content(name)
    at = whole.index(b"17:b=")  # of stream 1, which is first; 16 lies in one segment with it
    disk.put(name, whole[: at + 10] + bytes(len(whole) - at - 10))
    damaged = survey(disk, lambda row, data: bytes(data).startswith(b"%d:" % row.first_offset) and 0 not in data)
    put_in_place(disk, write_copy(damaged, Plan()), SimulatedDisk(), "")
    journal = opened(disk, turns)
    assert journal.compacted_to(1) == 17
    left = [(16, "a"), (17, "b"), (18, "c"), (19, "d")]
    assert found(turns, journal)[1] == left
    assert journal.count_records(1, 0, EVERYTHING) == 4
    assert first_offset(journal.find_by_time(1, 0, 17, EVERYTHING)) == 17
    assert compact(turns, journal, 1) is None
    assert found(turns, journal)[1] == left
    journal.close()


@pytest.mark.parametrize(("most_streams", "most_files"), [(500, 7), (10, 9)])
def test_streams_that_are_compacted_one_by_one_do_not_have_a_file_each(
    monkeypatch: pytest.MonkeyPatch, most_streams: int, most_files: int
) -> None:
    monkeypatch.setattr(compaction_plan, "MOST_STREAMS", most_streams)
    disk, turns = SimulatedDisk(), Turns()
    journal = open_journal(disk, turns.call_soon, segment_bytes=1 << 20)
    floors = dict.fromkeys(range(40), 0)
    for stream in floors:
        append(turns, journal, *(keyed(stream, offset, KEYS[offset % 4]) for offset in range(8)))
    sealed(turns, journal)
    for stream in floors:
        assert compact(turns, journal, stream, floors=floors) is None
    assert len([name for name in disk.names() if name.startswith("compacted-") and name.endswith(".log")]) <= most_files
    indexes = [segment.index for segment in journal._compactor._segments]
    assert max(len(index.streams) for index in indexes if index is not None) <= most_streams
    assert None not in indexes
    for stream in floors:
        assert len(list(keys_of(read(turns, journal, journal.find(stream, 0, EVERYTHING, EVERYTHING))))) == 4
    journal.close()


def test_streams_that_are_made_of_what_joins_them_do_not_have_a_file_each_either() -> None:
    disk, turns = SimulatedDisk(), Turns()
    journal = open_journal(disk, turns.call_soon, segment_bytes=1 << 20)
    floors = dict.fromkeys(range(80), 0)
    for stream in range(40):
        append(turns, journal, *(keyed(40 + stream, offset, KEYS[offset % 4]) for offset in range(8)))
    sealed(turns, journal)
    for stream in range(40):
        order = CompactionOrder(stream, EVERYTHING, RULES, [Joining(40 + stream, 0, -1, 1600)])
        done = partial(journal.compact, [order], floors, last_of_each_key)
        assert turns.wait(done) is None
    assert len([name for name in disk.names() if name.startswith("compacted-") and name.endswith(".log")]) <= 7
    journal.close()


def test_segments_are_small(filled: tuple[SimulatedDisk, Turns, LocalJournal]) -> None:
    """What is compacted here lies in several segments; else these tests would prove little."""
    _, _, journal = filled
    assert len(journal._segments) > 5
    assert SEGMENT_BYTES < 2000
    journal.close()
