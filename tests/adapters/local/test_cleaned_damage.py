"""Damage after a cleaning: what is missing or altered is found, and nothing is removed by an altered index."""

import logging

import pytest

from exacta.adapters.local.damage.inspection import Finding, Verdict, inspect
from exacta.adapters.local.index.segment_index import pack_segment_index
from exacta.ports.journal import Failed, JournalDamaged
from simulation.disk.simulated import Operation, SimulatedDisk
from tests.adapters.local.cleanings import (
    COUNT,
    FLOORS,
    check,
    clean,
    content,
    data,
    names_of,
    opened,
    play,
    snapshot,
)
from tests.adapters.turns import Turns, append, batch
from tests.shares import share_of

END = range(24, 32)
"""The bytes of a segment index that say where its segment ends."""


@pytest.fixture(scope="module")
def history() -> list[Operation]:
    return play(SimulatedDisk())


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


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
    for at in share_of(range(0, len(whole), 7)):
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
        for altered in (b"", before[:-8], before[:-1] + b"\1"):
            disk.put(name, altered)
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
    header_bytes = len(pack_segment_index({}, b"12345678", 0, 0)[0])
    places = [(names[0], byte) for byte in range(header_bytes, len(disk.content(names[0])))]
    places += [(name, byte) for name in names for byte in range(header_bytes)]
    stopped, places = 0, share_of(places)
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
