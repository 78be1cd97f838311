"""What no crash explains: altered, missing and foreign files. The journal refuses, and names file and byte."""

import random
import re

import pytest

from exacta.adapters.local.format import SEGMENT_HEADER_BYTES
from exacta.ports.journal import JournalDamaged, JournalEntry
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.turns import Turns, append, batch, read
from tests.shares import share_of

SEGMENT_BYTES = 1000
GROUP_COUNT = 12


@pytest.fixture(scope="module")
def written() -> tuple[SimulatedDisk, list[int]]:
    """A closed journal of some segments, with no snapshot, and the position after each group."""
    disk = SimulatedDisk()
    turns = Turns()
    journal = open_journal(disk, turns.call_soon, segment_bytes=SEGMENT_BYTES)
    ends = [append(turns, journal, batch(1, number, b"%03d" % number * 60)) for number in range(GROUP_COUNT)]
    journal.close()
    assert len(segments_of(disk)) >= 3
    return disk, ends


@pytest.fixture
def disk(written: tuple[SimulatedDisk, list[int]]) -> SimulatedDisk:
    return written[0].restarted()


@pytest.fixture
def ends(written: tuple[SimulatedDisk, list[int]]) -> list[int]:
    return written[1]


def segments_of(disk: SimulatedDisk) -> list[str]:
    return sorted(name for name in disk.files if name.endswith(".log"))


def flip(disk: SimulatedDisk, name: str, byte: int, bit: int = 0) -> None:
    content = bytearray(disk.content(name))
    content[byte] ^= 1 << bit
    disk.put(name, bytes(content))


def replayed(disk: SimulatedDisk) -> tuple[bytes | None, int]:
    """Open, replay, read all batches; return the snapshot and the number of events after it."""
    turns = Turns()
    journal = open_journal(disk, turns.call_soon, segment_bytes=SEGMENT_BYTES)
    try:
        blob, events = journal.replay()
        count = len(list(events))
        extents = journal.find(1, 0, 1 << 40, 1 << 40)
        last = extents[-1].last_offset + 1 if extents else 0
        assert read(turns, journal, extents) == b"".join(b"%03d" % number * 60 for number in range(last))
        return blob, count
    finally:
        journal.close()


def refuses(disk: SimulatedDisk, name: str) -> int:
    """Check that the journal is not opened or not replayed for a fault in `name`; return the byte that it names.

    Nothing may have been changed: a rescue needs it as it was.
    """
    before = {file: disk.content(file) for file in disk.files if not file.endswith(".index")}
    with pytest.raises(JournalDamaged) as caught:
        replayed(disk)
    assert {file: disk.content(file) for file in disk.files if not file.endswith(".index")} == before
    assert disk.open_handles == []
    assert disk.lock_count == 0
    found = re.match(r"simulated/(\S+), byte (\d+): ", str(caught.value))
    assert found is not None
    assert found[1] == name
    return int(found[2])


def test_undamaged(disk: SimulatedDisk):
    assert replayed(disk) == (None, GROUP_COUNT)


# --- altered bytes ----------------------------------------------------------------------------------------------------


def test_any_flipped_bit_before_the_last_group_is_refused(disk: SimulatedDisk, ends: list[int]):
    name = segments_of(disk)[-1]
    base = int(name.split(".")[0])
    groups = [end for end in ends if end > base]
    assert len(groups) >= 3
    last_group = groups[-2] - base + SEGMENT_HEADER_BYTES
    whole = disk.content(name)
    for byte in range(last_group):
        disk.put(name, whole)
        flip(disk, name, byte, byte % 8)
        named = refuses(disk, name)
        start = max(
            [0, *(end - base + SEGMENT_HEADER_BYTES for end in [base, *groups])], key=lambda at: (at <= byte, at)
        )
        assert named == (start if byte >= SEGMENT_HEADER_BYTES else 0)


def test_flipped_bit_in_a_sealed_segment_is_refused_in_the_replay(disk: SimulatedDisk):
    name = segments_of(disk)[1]
    whole = disk.content(name)
    for byte in share_of(range(0, len(whole), 3)):
        disk.put(name, whole)
        flip(disk, name, byte, byte % 8)
        assert refuses(disk, name) <= byte


def test_flipped_bit_in_the_last_group_looks_like_a_crash(disk: SimulatedDisk, ends: list[int]):
    """The limit that the format's page states: nothing written later bears witness to the last group."""
    name = segments_of(disk)[-1]
    flip(disk, name, len(disk.content(name)) - 1)
    assert replayed(disk) == (None, GROUP_COUNT - 1)


def test_a_group_written_ahead_of_its_sync_may_be_torn_until_a_later_group_calls_it_durable():
    """As a machine that stops leaves it: the sync of what follows was never finished, or it was."""
    disk, turns = SimulatedDisk(), Turns()
    journal = open_journal(disk, turns.call_soon)
    append(turns, journal, batch(1, 0, b"000" * 60))
    start = journal.position
    assert journal.write(start, [batch(1, 1, b"001" * 60)]) is not None
    append(turns, journal, batch(1, 2, b"002" * 60))
    last = journal.position
    name = segments_of(disk)[0]
    for byte in range(SEGMENT_HEADER_BYTES + start, SEGMENT_HEADER_BYTES + last):
        torn = disk.restarted()
        flip(torn, name, byte, byte % 8)
        _, count = replayed(torn)
        assert count in (1, 2), "neither of both is called durable by another"
    append(turns, journal, batch(1, 3, b"003" * 60))
    journal.close()
    for byte in range(SEGMENT_HEADER_BYTES + start, SEGMENT_HEADER_BYTES + last):
        damaged = disk.restarted()
        flip(damaged, name, byte, byte % 8)
        assert refuses(damaged, name) >= SEGMENT_HEADER_BYTES + start


def test_snapshot_bears_witness_to_the_last_group(disk: SimulatedDisk):
    turns = Turns()
    journal = open_journal(disk, turns.call_soon, segment_bytes=SEGMENT_BYTES)
    journal.save_snapshot(b"all", journal.position)
    journal.close()
    assert replayed(disk) == (b"all", 0)
    name = segments_of(disk)[-1]
    whole = disk.content(name)
    flip(disk, name, len(whole) - 1)
    refuses(disk, name)
    disk.put(name, whole[:-1])
    refuses(disk, name)


def test_group_in_another_place_is_refused(disk: SimulatedDisk, ends: list[int]):
    """A misdirected write: what is there is sound, but belongs elsewhere."""
    name = segments_of(disk)[0]
    content = disk.content(name)
    first, second = (
        slice(SEGMENT_HEADER_BYTES + a, SEGMENT_HEADER_BYTES + b) for a, b in [(0, ends[0]), (ends[0], ends[1])]
    )
    assert first.stop - first.start == second.stop - second.start
    only = SimulatedDisk()
    only.put("format", disk.content("format"))
    only.put(name, content[: first.start] + content[second] + content[first])
    assert refuses(only, name) == SEGMENT_HEADER_BYTES


def test_group_of_another_history_is_refused(disk: SimulatedDisk, ends: list[int]):
    """A write that never came: what is there is sound and was written there once, in a life that was cut off."""
    name = segments_of(disk)[0]
    group = slice(SEGMENT_HEADER_BYTES + ends[0], SEGMENT_HEADER_BYTES + ends[1])
    other = SimulatedDisk()
    other.put("format", disk.content("format"))
    other.put(name, disk.content(name)[: group.start])
    turns = Turns()
    journal = open_journal(other, turns.call_soon)
    append(turns, journal, batch(1, 1, b"abc" * 60))
    journal.close()
    whole = disk.content(name)
    assert len(other.content(name)) == group.stop
    only = SimulatedDisk()
    only.put("format", disk.content("format"))
    only.put(name, other.content(name) + whole[group.stop :])
    assert refuses(only, name) == group.stop


def test_group_lost_from_the_middle_is_refused(disk: SimulatedDisk, ends: list[int]):
    name = segments_of(disk)[0]
    content = disk.content(name)
    only = SimulatedDisk()
    only.put("format", disk.content("format"))
    start = SEGMENT_HEADER_BYTES + ends[0]
    only.put(name, content[:start] + bytes(ends[1] - ends[0]) + content[SEGMENT_HEADER_BYTES + ends[1] :])
    assert refuses(only, name) == start


def test_record_that_contains_a_journal_does_not_confuse_recovery():
    """Someone stores a copy of the very file as records, and a crash tears the last write: still a torn tail."""
    disk = SimulatedDisk()
    turns = Turns()
    journal = open_journal(disk, turns.call_soon)
    for number in range(4):
        append(turns, journal, batch(1, number, b"data"))
    copy = disk.content(segments_of(disk)[0])
    append(turns, journal, batch(1, 4, copy))
    journal.close()
    name = segments_of(disk)[0]
    content = bytearray(disk.content(name))
    torn_at = len(copy) + 20  # within the header of the group that contains the copy
    content[torn_at] ^= 1
    disk.put(name, bytes(content))
    journal = open_journal(disk, turns.call_soon)
    assert len(list(journal.replay()[1])) == 4
    journal.close()


# --- missing and foreign files ----------------------------------------------------------------------------------------


def test_truncated_or_grown_sealed_segment_is_refused(disk: SimulatedDisk):
    name = segments_of(disk)[0]
    whole = disk.content(name)
    for content in (whole[:-1], whole[: SEGMENT_HEADER_BYTES - 1], b"", whole + b"\0"):
        disk.put(name, content)
        refuses(disk, name)


def test_missing_segments_are_refused(disk: SimulatedDisk):
    first, second, *_ = segments_of(disk)
    without_second = disk.restarted()
    without_second.remove(second)
    refuses(without_second, first)  # which is shorter than the third one says
    without_first = disk.restarted()
    without_first.remove(first)
    refuses(without_first, first)


def test_missing_last_segment_is_refused_if_a_snapshot_bears_witness(disk: SimulatedDisk, ends: list[int]):
    turns = Turns()
    journal = open_journal(disk, turns.call_soon, segment_bytes=SEGMENT_BYTES)
    journal.save_snapshot(b"all", journal.position)
    journal.close()
    disk.remove(segments_of(disk)[-1])
    refuses(disk, segments_of(disk)[-1])
    for name in segments_of(disk):
        disk.remove(name)
    refuses(disk, f"{ends[-1]:020d}.snapshot")


def test_segment_of_another_journal_is_refused(disk: SimulatedDisk):
    other = SimulatedDisk()
    turns = Turns()
    journal = open_journal(other, turns.call_soon, segment_bytes=SEGMENT_BYTES)
    for number in range(GROUP_COUNT):
        append(turns, journal, batch(1, number, b"%03d" % (number + 100) * 60))
    journal.close()
    name = segments_of(disk)[1]
    disk.put(name, other.content(name))
    refuses(disk, name)


def test_leftovers_of_interrupted_writes_are_removed(disk: SimulatedDisk):
    disk.put("00000000000000000000.index.tmp", b"half")
    assert replayed(disk) == (None, GROUP_COUNT)
    assert not any(name.endswith(".tmp") for name in disk.files)


# --- segment indexes and snapshots: what can be made again -----------------------------------------------------------


def test_missing_or_damaged_segment_indexes_are_made_again(disk: SimulatedDisk):
    chance = random.Random(6)
    name = segments_of(disk)[0].replace(".log", ".index")
    whole = disk.content(name)
    damaged = [b"", whole[:-8], whole[:30], whole + bytes(8), bytes(len(whole))]
    for _ in range(50):
        altered = bytearray(whole)
        altered[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        damaged.append(bytes(altered))
    for content in damaged:
        disk.put(name, content)
        assert replayed(disk) == (None, GROUP_COUNT)
        assert disk.content(name) == whole
    disk.remove(name)
    assert replayed(disk) == (None, GROUP_COUNT)
    assert disk.content(name) == whole


def test_segment_index_of_another_segment_or_time_is_made_again(disk: SimulatedDisk, ends: list[int]):
    first, second = (name.replace(".log", ".index") for name in segments_of(disk)[:2])
    whole = disk.content(first)
    disk.put(first, disk.content(second))
    assert replayed(disk) == (None, GROUP_COUNT)
    assert disk.content(first) == whole
    # The same segment in another life, in which it was sealed earlier.
    name = segments_of(disk)[0]
    other = SimulatedDisk()
    other.put("format", disk.content("format"))
    other.put(name, disk.content(name)[: SEGMENT_HEADER_BYTES + ends[0]])
    turns = Turns()
    journal = open_journal(other, turns.call_soon, segment_bytes=1)
    append(turns, journal, JournalEntry(b"in the next segment"))
    journal.close()
    assert other.content(first) != whole
    disk.put(first, other.content(first))
    assert replayed(disk) == (None, GROUP_COUNT)
    assert disk.content(first) == whole


def test_damaged_snapshot_is_passed_over_for_the_one_before():
    disk = SimulatedDisk()
    turns = Turns()
    journal = open_journal(disk, turns.call_soon, segment_bytes=SEGMENT_BYTES)
    positions = []
    for number in range(8):
        append(turns, journal, batch(1, number, b"%03d" % number * 60))
        if number in (1, 4, 6):
            positions.append(journal.position)
            journal.save_snapshot(b"after %d" % number, journal.position)
    journal.close()
    oldest, older, newest = (f"{position:020d}.snapshot" for position in positions)
    assert oldest not in disk.files
    assert replayed(disk) == (b"after 6", 1)
    whole = disk.content(newest)
    for byte in range(len(whole)):
        disk.put(newest, whole)
        flip(disk, newest, byte, byte % 8)
        assert replayed(disk) == (b"after 4", 3)
    disk.put(newest, whole[:-1])
    disk.put(older, b"")
    assert replayed(disk) == (None, 8)


def test_snapshot_that_fits_no_group_is_refused(disk: SimulatedDisk, ends: list[int]):
    turns = Turns()
    journal = open_journal(disk, turns.call_soon, segment_bytes=SEGMENT_BYTES)
    journal.save_snapshot(b"all", ends[-1])
    journal.close()
    good = f"{ends[-1]:020d}.snapshot"
    assert replayed(disk) == (b"all", 0)
    # A snapshot of another journal: sound in itself, of a position that is no boundary here.
    other = SimulatedDisk()
    journal = open_journal(other, turns.call_soon)
    append(turns, journal, JournalEntry(b"x" * 17))
    journal.save_snapshot(b"foreign", journal.position)
    journal.close()
    foreign = next(name for name in other.files if name.endswith(".snapshot"))
    disk.remove(good)
    disk.put(foreign, other.content(foreign))
    refuses(disk, foreign)
