"""Damage of every kind in every file: refused, told, repaired, sound; and all that lay outside of it is still there."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from exacta.adapters.local import LocalJournal
from exacta.adapters.local.damage.inspection import Place, Verdict, inspect
from exacta.core.apply import apply
from exacta.core.events import decode_event
from exacta.core.snapshot import is_same, restore
from exacta.core.state.limits import Limits
from exacta.core.state.state import State
from exacta.ports.journal import IndexEntry, JournalError
from exacta.repair import Examination, Remedy, Way, apply_remedy, examine, finish, is_batch
from simulation.disk.simulated import SimulatedDisk
from tests import repairing
from tests.adapters.turns import Turns
from tests.repairing import batches, consumed, findings, on_disk, put_back

ORDER = [Way.MEND, Way.DROP, Way.DROP_AND_CUT, Way.CUT]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal whose broker was killed, so that it has events behind its newest snapshot."""
    directory = tmp_path_factory.mktemp("written")
    repairing.write(directory, stops=False)
    return directory


@pytest.fixture(scope="module")
def sound(data: Path) -> SimulatedDisk:
    disk = on_disk(data / "journal")
    LocalJournal.open(disk, Turns().call_soon).close()  # as the next start leaves it
    assert findings(disk) == []
    assert len(names(disk, ".log")) >= 4
    assert len(names(disk, ".snapshot")) == 2
    return disk


def names(disk: SimulatedDisk, suffix: str) -> list[str]:
    return sorted(name for name in disk.files if name.endswith(suffix))


def fresh(disk: SimulatedDisk) -> SimulatedDisk:
    copy = SimulatedDisk()
    for name in disk.files:
        copy.put(name, disk.content(name))
    return copy


def state_of(disk: SimulatedDisk) -> State:
    """Open it as a server does; raise JournalError where that refuses."""
    journal = LocalJournal.open(fresh(disk), Turns().call_soon)
    try:
        blob, events = journal.replay()
        state = restore(blob, Limits())
        for event in events:
            apply(state, decode_event(event))
        return state
    finally:
        journal.close()


def places(disk: SimulatedDisk) -> list[Place]:
    return [each for each in inspect(disk) if isinstance(each, Place)]


def possible(examined: Examination) -> dict[Way, Remedy]:
    return {each.way: each for each in examined.remedies if each.plan is not None}


def overwrite(disk: SimulatedDisk, name: str, offset: int, content: bytes) -> None:
    whole = disk.content(name)
    disk.put(name, whole[:offset] + content + whole[offset + len(content) :])


def flip(disk: SimulatedDisk, name: str, offset: int, bit: int) -> None:
    overwrite(disk, name, offset, bytes((disk.content(name)[offset] ^ 1 << bit,)))


def repaired(disk: SimulatedDisk, way: Way) -> tuple[SimulatedDisk, list[str], SimulatedDisk]:
    """Repair in this way; return the disk, the report, and what was kept."""
    before = {name: disk.content(name) for name in disk.files}
    examined = examine(disk)
    assert {name: disk.content(name) for name in disk.files} == before, "looking changes nothing"
    keep = SimulatedDisk()
    report = apply_remedy(examined, possible(examined)[way], disk, keep)
    assert disk.open_handles == keep.open_handles == []
    after = {name: disk.content(name) for name in disk.files}
    for name, content in before.items():
        if after.get(name) != content and not name.endswith(".tmp"):
            assert keep.content(name) == content, "whatever was replaced is kept"
    assert findings(disk) == []
    state_of(disk)
    return disk, report, keep


# --- what can be put right --------------------------------------------------------------------------------------------


def test_a_flipped_bit_anywhere_is_put_back(sound: SimulatedDisk) -> None:
    whole = batches(sound)
    chance = random.Random(1)
    for name in [*names(sound, ".log"), *names(sound, ".snapshot"), "format"]:
        size = len(sound.content(name))
        spots = {0, 8, 13, 20, 30, 40, 60, 64, 70, 80, 100, 120, *(chance.randrange(size) for _ in range(5)), size - 1}
        for offset in spots:
            if offset >= size:
                continue
            disk = fresh(sound)
            flip(disk, name, offset, chance.randrange(8))
            assert findings(disk), (name, offset)
            repaired(disk, Way.MEND)
            assert batches(disk) == whole
            assert is_same(state_of(disk), state_of(sound))
            assert disk.content(name) == sound.content(name)


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
    for name in [*names(sound, ".index"), *names(sound, ".snapshot"), "format"]:
        for damage in (None, b"", b"nonsense" * 100):
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


# --- what is lost -----------------------------------------------------------------------------------------------------


def zero_sectors(disk: SimulatedDisk, name: str, offset: int) -> tuple[int, int]:
    begin = offset - offset % 512
    size = min(1024, len(disk.content(name)) - begin)
    overwrite(disk, name, begin, b"\xa5" * size)
    return begin, begin + size


def cut_file(disk: SimulatedDisk, name: str, offset: int) -> tuple[int, int]:
    size = len(disk.content(name))
    disk.put(name, disk.content(name)[:offset])
    return offset, size


def remove(disk: SimulatedDisk, name: str, offset: int) -> tuple[int, int]:
    size = len(disk.content(name))
    disk.remove(name)
    return 0, size


def zero_all(disk: SimulatedDisk, name: str, offset: int) -> tuple[int, int]:
    size = len(disk.content(name))
    disk.put(name, bytes(size))
    return 0, size


Damage = Callable[[SimulatedDisk, str, int], tuple[int, int]]


@pytest.mark.parametrize("damage", [zero_sectors, cut_file, remove, zero_all])
@pytest.mark.parametrize("seed", range(4))
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


def offsets_of(state: State) -> dict[str, object]:
    """What clients rely on most."""
    return {
        "partitions": [(each.topic, each.index, each.next_offset) for each in state.partitions.values()],
        "groups": {name: group.offsets for name, group in state.groups.items()},
        "writers": [(each.transactional_id, each.producer_id, each.phase) for each in state.transactional_ids.values()],
    }


def check_told(sound: SimulatedDisk, lost: set[repairing.Row], report: list[str]) -> None:
    partitions = state_of(sound).partitions
    said = "\n".join(report)
    for stream, first, last in lost:
        partition = partitions[stream]  # type: ignore[index]
        lines = [line for line in report if f"topic {partition.topic}, partition {partition.index}:" in line]
        ranges = [tuple(map(int, line.split("offsets ")[1].split(" to "))) for line in lines]
        assert any(begin <= first and last <= end for begin, end in ranges), said


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
    assert LocalJournal.open(fresh(disk), Turns().call_soon).may_have_lost, "what is open there must be aborted"


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
    tried = 0
    for hit in places(sound)[:-1]:
        rows = [row for entry in hit.group.entries for row in entry.rows if row.size > 5000]
        if hit.group.position < newest or not rows:
            continue
        disk = fresh(sound)
        base = int(hit.name.split(".")[0])
        overwrite(disk, hit.name, hit.group.payload_position - base + 64 + rows[0].start + at, damage)
        _, report, _ = repaired(disk, Way.DROP)
        left = batches(disk)
        row = rows[0]
        assert whole.keys() - left.keys() <= {(row.stream, row.first_offset, row.last_offset)}
        assert is_same(state_of(disk), state_of(sound)), "no event is lost"
        assert any(f"offsets {row.first_offset} to {row.last_offset}" in line for line in report)
        tried += 1
    assert tried >= 3


# --- a journal that was cleaned ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cleaned(data: Path, tmp_path_factory: pytest.TempPathFactory) -> SimulatedDisk:
    directory = tmp_path_factory.mktemp("cleaned")
    put_back(on_disk(data / "journal"), directory / "journal")
    repairing.clean(directory)
    disk = on_disk(directory / "journal")
    LocalJournal.open(disk, Turns().call_soon).close()
    assert findings(disk) == []
    assert names(disk, ".1.log")
    return disk


@pytest.mark.parametrize("damage", [zero_sectors, cut_file, remove, zero_all])
def test_a_cleaned_segment_loses_its_batches_alone(cleaned: SimulatedDisk, damage: Damage) -> None:
    whole = batches(cleaned)
    for name in names(cleaned, ".1.log"):
        in_it = {
            (row.stream, row.first_offset, row.last_offset)
            for each in places(cleaned)
            if each.name == name
            for entry in each.group.entries
            for row in entry.rows
        }
        disk = fresh(cleaned)
        damage(disk, name, len(cleaned.content(name)) // 2)
        ways = possible(examine(disk))
        assert Way.CUT not in ways, "what is before it cannot be replayed"
        repaired(disk, Way.DROP)
        left = batches(disk)
        assert {row for row in whole if left.get(row) != whole[row]} <= in_it
        assert offsets_of(state_of(disk)) == offsets_of(state_of(cleaned))


def test_what_a_cleaned_segments_header_said_follows_from_the_next_one(cleaned: SimulatedDisk) -> None:
    for name in [*names(cleaned, ".1.log"), *names(cleaned, "start")]:
        disk = fresh(cleaned)
        overwrite(disk, name, 0, bytes(24))
        repaired(disk, Way.MEND)
        assert batches(disk) == batches(cleaned)


def test_without_both_snapshots_nothing_repairs_what_was_cleaned(cleaned: SimulatedDisk) -> None:
    disk = fresh(cleaned)
    for name in names(disk, ".snapshot"):
        disk.put(name, disk.content(name)[:100])
    with pytest.raises(JournalError, match="events are gone"):
        state_of(disk)
    examined = examine(disk)
    assert possible(examined) == {}
    assert any("cleaned away" in each.why_not for each in examined.remedies)


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> SimulatedDisk:
    directory = tmp_path_factory.mktemp("compacted")
    repairing.compact(directory)
    disk = on_disk(directory / "journal")
    LocalJournal.open(disk, Turns().call_soon).close()
    assert findings(disk) == []
    assert all(is_batch(IndexEntry(*row, 0, 0, len(data), 0), data) for row, data in batches(disk).items())
    return disk


@pytest.mark.parametrize("damage", [zero_sectors, cut_file, remove, zero_all])
def test_a_compacted_segment_loses_its_batches_alone(compacted: SimulatedDisk, damage: Damage) -> None:
    whole = batches(compacted)
    name = max(name for name in names(compacted, ".log") if name.startswith("compacted-"))
    disk = fresh(compacted)
    damage(disk, name, len(compacted.content(name)) // 2)
    assert findings(disk)
    ways = possible(examine(disk))
    assert ways.keys() == {Way.DROP}
    _, report, _ = repaired(disk, Way.DROP)
    left = batches(disk)
    assert all(left[row] == whole[row] for row in left)
    assert offsets_of(state_of(disk)) == offsets_of(state_of(compacted))
    assert any("compacted records" in line for line in report)


def test_what_can_be_put_right_of_a_compacted_segment(compacted: SimulatedDisk) -> None:
    chance = random.Random(3)
    name = max(name for name in names(compacted, ".log") if name.startswith("compacted-"))
    for target in (name, "compacted"):
        if target not in compacted.files:
            continue
        for offset in (0, 9, 17, chance.randrange(len(compacted.content(target)))):
            disk = fresh(compacted)
            flip(disk, target, offset, 3)
            repaired(disk, Way.MEND)
            assert disk.content(target) == compacted.content(target)
    disk = fresh(compacted)
    overwrite(disk, name, 0, bytes(40))
    repaired(disk, Way.MEND)
    assert batches(disk) == batches(compacted)


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
    for length in range(begin, len(damaged.log) + 1):
        if damaged.log[length - 1][0] == "write" and length % 3:
            continue
        for keep in (False, True):
            left = SimulatedDisk.after(damaged.log[:length]).crashed(
                keep_sector=lambda _, keep=keep: keep, keep_names=keep
            )
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
                outcomes.add("begun anew")
    assert outcomes == {"finished", "was finished", "begun anew"}


# --- a real broker and a real client ----------------------------------------------------------------------------------


def test_a_client_reads_all_that_was_outside_of_the_loss(sound: SimulatedDisk, data: Path, tmp_path: Path) -> None:
    put_back(sound, tmp_path / "sound" / "journal")
    expected = {
        (topic, partition): consumed(tmp_path / "sound", topic, partition)
        for topic, partition in [("plain", 0), ("plain", 1), ("moved", 0)]
    }
    assert len(expected["moved", 0]) == 64
    disk = fresh(sound)
    for number in (12, 13, 14, 30, 31, 60):
        hit = places(sound)[number]
        overwrite(disk, hit.name, hit.offset + 30, b"\xa5" * 300)
    _, report, _ = repaired(disk, Way.DROP)
    put_back(disk, tmp_path / "repaired" / "journal")
    lost = 0
    for (topic, partition), whole in expected.items():
        left = consumed(tmp_path / "repaired", topic, partition)
        assert set(left) <= set(whole)
        assert sorted(left) == left
        lines = [line for line in report if f"topic {topic}, partition {partition}: offsets" in line]
        gone = [tuple(map(int, line.split("offsets ")[1].split(" to "))) for line in lines]
        outside = [each for each in whole if not any(first <= each[0] <= last for first, last in gone)]
        assert left == outside
        lost += len(whole) - len(left)
    assert lost


def test_a_marker_that_is_lost_hides_nothing_that_comes_after(sound: SimulatedDisk, tmp_path: Path) -> None:
    """Without an aborted transaction's marker, readers would skip its producer's next transaction as well."""
    state = state_of(sound)
    partition = next(each for each in state.partitions.values() if each.topic == "moved" and each.index == 0)
    aborted = partition.aborted[1]
    hit = next(
        each
        for each in places(sound)
        for entry in each.group.entries
        for row in entry.rows
        if (row.stream, row.first_offset) == (partition.partition_id, aborted.last_offset)
    )
    put_back(sound, tmp_path / "sound" / "journal")
    whole = consumed(tmp_path / "sound", "moved", 0)
    disk = fresh(sound)
    overwrite(disk, hit.name, hit.offset + 20, b"\xa5" * 40)
    repaired(disk, Way.DROP)
    put_back(disk, tmp_path / "repaired" / "journal")
    left = consumed(tmp_path / "repaired", "moved", 0)
    rows = {row.first_offset for entry in hit.group.entries for row in entry.rows}
    assert [each for each in whole if each not in left and each[0] not in rows] == []
