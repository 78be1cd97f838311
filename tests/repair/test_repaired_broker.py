"""A real broker starts on a repaired journal, and a real client reads from it."""

from pathlib import Path

from exacta.repair import Way
from simulation.disk.simulated import SimulatedDisk
from tests.repair.disks import fresh, overwrite, places, repaired, state_of
from tests.repairing import consumed, put_back


def test_a_client_reads_all_that_was_outside_of_the_loss(sound: SimulatedDisk, data: Path, tmp_path: Path) -> None:
    put_back(sound, tmp_path / "sound" / "journal")
    expected = {
        (topic, partition): consumed(tmp_path / "sound", topic, partition)
        for topic, partition in [("plain", 0), ("plain", 1), ("moved", 0), ("aside", 0)]
    }
    assert (len(expected["moved", 0]), len(expected["aside", 0])) == (62, 21)
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
    """If an aborted transaction's marker were missing, readers would skip its producer's next transaction as well."""
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
