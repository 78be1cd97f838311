"""Damage of every kind in every file: refused, told, repaired, sound; and all that lay outside of it is still there."""

import random

import pytest

from exacta.adapters.local.damage.inspection import Verdict
from exacta.core.ids import Offset, PartitionId
from exacta.core.snapshot import is_same
from exacta.core.state.partition import Partition
from exacta.core.state.staged import EnteredStream
from exacta.core.state.state import State
from exacta.ports.journal import JournalError
from exacta.repair import Way, examine, finish
from exacta.repair.gaps import streams_of
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import SimulatedDisk
from tests import repairing
from tests.adapters.turns import Turns
from tests.repair.disks import (
    Damage,
    cut_file,
    flip,
    fresh,
    names,
    offsets_of,
    overwrite,
    places,
    possible,
    remove,
    repaired,
    state_of,
    zero_all,
    zero_sectors,
)
from tests.repairing import batches, findings
from tests.sectors import all_or_none
from tests.shares import is_whole, share_of

ORDER = [Way.MEND, Way.DROP, Way.DROP_AND_CUT, Way.CUT]


# --- what can be put right --------------------------------------------------------------------------------------------


def test_a_flipped_bit_anywhere_is_put_back(sound: SimulatedDisk) -> None:
    whole = batches(sound)
    for name, offset, bit in share_of(bits(sound)):
        disk = fresh(sound)
        flip(disk, name, offset, bit)
        assert findings(disk), (name, offset)
        repaired(disk, Way.MEND)
        assert batches(disk) == whole
        assert is_same(state_of(disk), state_of(sound))
        assert disk.content(name) == sound.content(name)


def bits(sound: SimulatedDisk) -> list[tuple[str, int, int]]:
    """Return a bit of each field of the headers of each file, and some bits behind them."""
    chance, found = random.Random(1), []
    for name in [*names(sound, ".log"), *names(sound, ".snapshot"), "format"]:
        size = len(sound.content(name))
        spots = {0, 8, 13, 20, 30, 40, 60, 64, 70, 80, 100, 120, *(chance.randrange(size) for _ in range(5)), size - 1}
        found += [(name, offset, chance.randrange(8)) for offset in sorted(spots) if offset < size]
    return found


@pytest.mark.parametrize("damage", [bytes(64), b"\xff" * 64, bytes(16)])
def test_a_segments_header_follows_from_what_lies_behind_it(sound: SimulatedDisk, damage: bytes) -> None:
    for name in names(sound, ".log"):
        disk = fresh(sound)
        overwrite(disk, name, 0, damage)
        with pytest.raises(JournalError):
            state_of(disk)
        repaired(disk, Way.MEND)
        assert disk.content(name) == sound.content(name)


def test_what_is_derived_is_made_again(sound: SimulatedDisk) -> None:
    files = [*names(sound, ".index"), *names(sound, ".snapshot"), "format"]
    for name, damage in share_of([(name, damage) for name in files for damage in (None, b"", b"nonsense" * 100)]):
        if damage is None and name.endswith(".snapshot"):
            continue  # then there is none, and nothing wrong
        disk = fresh(sound)
        disk.remove(name) if damage is None else disk.put(name, damage)
        assert findings(disk)
        repaired(disk, Way.MEND)
        assert batches(disk) == batches(sound)
        assert is_same(state_of(disk), state_of(sound))


def test_a_segment_that_has_grown_is_cut(sound: SimulatedDisk) -> None:
    disk = fresh(sound)
    name = names(disk, ".log")[1]
    disk.put(name, disk.content(name) + b"more" * 300)
    repaired(disk, Way.MEND)
    assert disk.content(name) == sound.content(name)


def test_a_torn_end_needs_no_remedy_and_is_cut_by_one(sound: SimulatedDisk) -> None:
    disk = fresh(sound)
    name = names(disk, ".log")[-1]
    last = places(sound)[-1]
    overwrite(disk, name, last.offset + 60, b"\xa5" * 20)
    assert {each.verdict for each in findings(disk)} == {Verdict.CUT_SHORT}
    repaired(disk, Way.MEND)
    assert disk.content(name) == sound.content(name)[: last.offset]


@pytest.mark.parametrize("damage", [zero_sectors, cut_file, remove, zero_all])
@pytest.mark.parametrize("seed", share_of(range(10)))
def test_all_that_lies_outside_of_the_loss_is_kept(sound: SimulatedDisk, damage: Damage, seed: int) -> None:
    chance = random.Random(seed)
    whole = batches(sound)
    for name in names(sound, ".log"):
        disk = fresh(sound)
        begin, end = damage(disk, name, chance.randrange(64, len(sound.content(name))))
        if not any(each.verdict is Verdict.DAMAGED for each in findings(disk)):
            continue
        hit = {
            (row.stream, row.first_offset, row.last_offset)
            for each in places(sound)
            if each.name == name and each.offset < end and each.offset + each.group.end - each.group.position > begin
            for entry in each.group.entries
            for row in entry.rows
        }
        examined = examine(disk)
        ways = possible(examined)
        assert ways, [(each.way, each.why_not) for each in examined.remedies]
        for way in ways:
            copy = fresh(disk)
            _, report, _ = repaired(copy, way)
            left = batches(copy)
            altered = {row for row in whole if left.get(row) != whole[row]}
            if way is Way.MEND:
                assert left == whole
            elif way is Way.DROP:
                assert altered <= hit
                check_told(sound, altered, report)
                assert offsets_of(state_of(copy)) == offsets_of(state_of(sound))
            else:
                assert {row for row in altered if row in left} <= hit
                assert any("given up" in line for line in report)


def check_told(sound: SimulatedDisk, lost: set[repairing.Row], report: list[str]) -> None:
    streams = streams_of(state_of(sound))
    said = "\n".join(report)
    for stream, first, last in lost:
        of = streams.get(stream)
        if of is None:
            continue  # it was staged, and aborted
        if of.producer_id >= 0:
            assert "(still open: abort it)" in said
            continue
        lines = [line for line in report if f"topic {of.partition.topic}, partition {of.partition.index}:" in line]
        ranges = [tuple(map(int, line.split("offsets ")[1].split(" to "))) for line in lines]
        assert any(begin <= first + of.shift and last + of.shift <= end for begin, end in ranges), said


def test_what_followed_the_last_sound_byte_is_given_up_only_by_a_cut(sound: SimulatedDisk) -> None:
    """The journal ends before its newest snapshot: that knows the state there, and nobody what came after it."""
    disk = fresh(sound)
    newest = int(names(disk, ".snapshot")[-1].split(".")[0])
    before = [name for name in names(disk, ".log") if int(name.split(".")[0]) < newest]
    for name in names(disk, ".log")[len(before) :]:
        disk.remove(name)
    last = before[-1]
    disk.put(last, disk.content(last)[: newest - int(last.split(".")[0]) + 64 - 10])
    assert not {Way.MEND, Way.DROP} & possible(examine(disk)).keys()
    _, report, _ = repaired(disk, Way.DROP_AND_CUT)
    assert any(f"whatever was written behind position {newest}" in line for line in report)
    assert open_journal(fresh(disk), Turns().call_soon).may_have_lost, "what is open there must be aborted"


def test_where_no_snapshot_is_left_only_the_beginning_can_be_kept(sound: SimulatedDisk) -> None:
    disk = fresh(sound)
    for name in names(disk, ".snapshot"):
        disk.put(name, b"")
    hit = places(sound)[40]
    overwrite(disk, hit.name, hit.offset, bytes(200))
    examined = examine(disk)
    ways = possible(examined)
    assert Way.DROP not in ways
    _, report, _ = repaired(disk, Way.CUT)
    assert [each.group.position for each in places(disk)] == [each.group.position for each in places(sound)[:40]]
    assert any("which are given out again" in line for line in report)


@pytest.mark.parametrize(("at", "damage"), [(2000, b"\xa5" * 700), (12, b"\0\0\0\3")])  # at 12: its leader's epoch
def test_one_batch_behind_the_newest_snapshot_is_lost_alone(sound: SimulatedDisk, at: int, damage: bytes) -> None:
    newest = int(names(sound, ".snapshot")[-1].split(".")[0])
    whole = batches(sound)
    large = [
        (hit, [row for entry in hit.group.entries for row in entry.rows if row.size > 5000])
        for hit in places(sound)[:-1]
        if hit.group.position >= newest
    ]
    large = [(hit, rows) for hit, rows in large if rows]
    assert len(large) >= 3
    for hit, rows in share_of(large):
        disk = fresh(sound)
        base = int(hit.name.split(".")[0])
        overwrite(disk, hit.name, hit.group.payload_position - base + 64 + rows[0].start + at, damage)
        _, report, _ = repaired(disk, Way.DROP)
        left = batches(disk)
        row = rows[0]
        assert whole.keys() - left.keys() <= {(row.stream, row.first_offset, row.last_offset)}
        assert is_same(state_of(disk), state_of(sound)), "no event is lost"
        check_told(sound, {(row.stream, row.first_offset, row.last_offset)}, report)


# --- a repair that is interrupted -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [Way.DROP, Way.CUT])
def test_a_repair_that_is_cut_short_anywhere_is_finished_or_was_never_begun(sound: SimulatedDisk, way: Way) -> None:
    damaged = fresh(sound)
    hit = places(sound)[10]
    overwrite(damaged, hit.name, hit.offset, bytes(600))
    begin = len(damaged.log)
    repaired(damaged, way)
    wanted = {name: damaged.content(name) for name in damaged.files}
    outcomes = set()
    some_writes = [
        length
        for length in range(begin, len(damaged.log) + 1)
        if damaged.log[length - 1][0] != "write" or length % 3 == 0
    ]
    for length in share_of(some_writes):
        for keep in (False, True):
            left = SimulatedDisk.after(damaged.log[:length]).crashed(keep_sector=all_or_none(keep), keep_names=keep)
            if "repair" in left.files:
                with pytest.raises(JournalError, match="was interrupted"):
                    state_of(left)
                assert finish(left) == "simulated"
                assert {name: left.content(name) for name in left.files} == wanted
                outcomes.add("finished")
            elif {name: left.content(name) for name in left.files} == wanted:
                outcomes.add("was finished")
            else:
                repaired(left, way)
                assert batches(left) == batches(damaged)
                outcomes.add("begun again")
    assert outcomes <= {"finished", "was finished", "begun again"}
    assert len(outcomes) == 3 or not is_whole()


def test_what_compaction_has_taken_in_of_a_stream_is_not_expected_there() -> None:
    """The state of an older snapshot still knows of the stream, and its batches may be cleaned away."""
    state, partition = State(), Partition(PartitionId(0), "t", 0)
    state.partitions[PartitionId(0)] = partition
    partition.next_offset = Offset(9)
    partition.entered = [
        EnteredStream(Offset(0), Offset(3), PartitionId(7), 1, 0),
        EnteredStream(Offset(3), Offset(9), PartitionId(8), 1, 0),
    ]
    assert streams_of(state).keys() == {0, 7, 8}
    assert streams_of(state, {0: 3}).keys() == {0, 8}
