"""A journal that was cleaned or compacted loses its damaged batches alone."""

import random
from pathlib import Path

import pytest

from exacta.ports.journal import IndexEntry, JournalError
from exacta.repair import Way, examine, is_batch
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
from tests.repairing import batches, findings, on_disk, put_back


@pytest.fixture(scope="module")
def cleaned(data: Path, tmp_path_factory: pytest.TempPathFactory) -> SimulatedDisk:
    directory = tmp_path_factory.mktemp("cleaned")
    put_back(on_disk(data / "journal"), directory / "journal")
    repairing.clean(directory)
    disk = on_disk(directory / "journal")
    open_journal(disk, Turns().call_soon).close()
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
        # The broker's own events decide how much is left in each segment, and so which one is cleaned first.
        is_first = name == names(cleaned, ".log")[0]
        assert not is_first or Way.CUT not in ways, "what is before it cannot be replayed"
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
    open_journal(disk, Turns().call_soon).close()
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
