"""What is found in a journal's files without opening it, held against what opening it makes of them."""

import logging
import random

import pytest

from exacta.adapters.local.damage.inspection import Finding, SoundGroup, Verdict, inspect
from exacta.ports.journal import JournalError
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.local.histories import GROUPS, SOME_UNSYNCED, dice_of, every_crash, play
from tests.adapters.local.histories import SEGMENT_BYTES as CRASHES_SEGMENT_BYTES
from tests.adapters.local.test_damage import GROUP_COUNT, SEGMENT_BYTES, flip, segments_of
from tests.adapters.turns import Turns, append, batch
from tests.sectors import by_chance
from tests.shares import is_whole


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


@pytest.fixture(scope="module")
def written() -> SimulatedDisk:
    """A closed journal of some segments, with two snapshots, some of it written ahead of its sync."""
    disk, turns = SimulatedDisk(), Turns()
    journal = open_journal(disk, turns.call_soon, segment_bytes=SEGMENT_BYTES)
    for number in range(GROUP_COUNT):
        group = [batch(1, number, b"%03d" % number * 60)]
        if number % 3 or journal.write(journal.position, group) is None:
            append(turns, journal, *group)
        if number in (1, 7):
            journal.save_snapshot(b"after %d" % number, journal.position)
    journal.close()
    assert len(segments_of(disk)) >= 3
    return disk


def inspected(disk: SimulatedDisk) -> tuple[list[SoundGroup], list[Finding]]:
    """Inspect, which changes nothing."""
    calls = len(disk.log)
    found = list(inspect(disk))
    assert len(disk.log) == calls
    assert disk.open_handles == []
    return [each for each in found if isinstance(each, SoundGroup)], [
        each for each in found if isinstance(each, Finding)
    ]


def opens(disk: SimulatedDisk, segment_bytes: int = SEGMENT_BYTES) -> bool:
    """Whether a server would start on it."""
    try:
        journal = open_journal(disk.restarted(), Turns().call_soon, segment_bytes=segment_bytes)
    except JournalError:
        return False
    try:
        list(journal.replay()[1])
    except JournalError:
        return False
    finally:
        journal.close()
    return True


def test_all_of_a_sound_journal_is_found(written: SimulatedDisk) -> None:
    places, findings = inspected(written)
    assert findings == []
    events = [entry.event for place in places for entry in place.group.entries]
    assert events == [b"event of 1 at %d" % number for number in range(GROUP_COUNT)]
    for place in places:
        content = written.content(place.name)
        assert content[place.offset :].startswith(content[24:32]), "the segment's mark begins every group"


@pytest.mark.parametrize("suffix", [".log", ".index", ".snapshot", "format"])
def test_a_flipped_bit_is_judged_as_the_next_start_does(written: SimulatedDisk, suffix: str) -> None:
    chance = random.Random(12)
    verdicts = set()
    for name in [name for name in written.files if name.endswith(suffix)]:
        size = len(written.content(name))
        for byte in {*range(min(size, 80)), *(chance.randrange(size) for _ in range(60)), size - 1}:
            disk = written.restarted()
            flip(disk, name, byte, byte % 8)
            _, findings = inspected(disk)
            assert findings, (name, byte)
            assert {finding.name for finding in findings} == {name}
            damaged = any(finding.verdict is Verdict.DAMAGED for finding in findings)
            if suffix == ".log" and not damaged:
                assert opens(disk)
            if opens(disk) is False:
                assert damaged, (name, byte, findings)
            verdicts |= {finding.verdict for finding in findings}
    wanted = {
        ".log": {Verdict.DAMAGED, Verdict.CUT_SHORT},
        ".index": {Verdict.MADE_AGAIN},
        ".snapshot": {Verdict.MADE_AGAIN},
        "format": {Verdict.DAMAGED},
    }
    assert verdicts == wanted[suffix]


def test_damage_hides_nothing_but_itself(written: SimulatedDisk) -> None:
    whole, _ = inspected(written)
    for hit in whole[:-2]:
        disk = written.restarted()
        flip(disk, hit.name, hit.offset + 60)
        places, findings = inspected(disk)
        assert [place.group.position for place in places] == [
            place.group.position for place in whole if place.group.position != hit.group.position
        ]
        assert [(each.name, each.offset, each.verdict) for each in findings] == [
            (hit.name, hit.offset, Verdict.DAMAGED)
        ]


def test_what_a_crash_leaves_is_never_called_damaged() -> None:
    seen = set()
    for log, disk in every_crash(play(SimulatedDisk(), GROUPS, unsynced=SOME_UNSYNCED)):
        chance = dice_of(log)
        for _ in range(2):
            share = chance.random()
            left = disk.crashed(
                keep_sector=by_chance(chance, share),
                grow=chance.random() < 0.5,
                keep_names=chance.random() < 0.5,
            )
            _, findings = inspected(left)
            assert not [each for each in findings if each.verdict is Verdict.DAMAGED]
            assert opens(left, CRASHES_SEGMENT_BYTES)
            seen |= {each.verdict for each in findings}
    assert seen <= {Verdict.CUT_SHORT, Verdict.MADE_AGAIN}
    assert len(seen) == 2 or not is_whole()


def test_missing_files_are_found(written: SimulatedDisk) -> None:
    first, second, *_, last = segments_of(written)
    for name, where, verdict in (
        (second, first, Verdict.DAMAGED),
        (first.replace(".log", ".index"), first.replace(".log", ".index"), Verdict.MADE_AGAIN),
        ("format", "format", Verdict.DAMAGED),
    ):
        disk = written.restarted()
        disk.remove(name)
        _, findings = inspected(disk)
        assert (findings[0].name, findings[0].verdict) == (where, verdict)
        assert opens(disk) is (verdict is Verdict.MADE_AGAIN)
    disk = written.restarted()
    for name in (last, *segments_of(disk)):
        if name in disk.files:
            disk.remove(name)
    _, findings = inspected(disk)
    assert findings[0].reason == "there is no segment"
