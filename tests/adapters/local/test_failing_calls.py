"""Calls to the disk that fail: an append that fails is final, and what was acknowledged survives."""

import errno

import pytest

from exacta.ports.journal import Failed, JournalDamaged, JournalError
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.local.histories import (
    FIRST_SEGMENT,
    GROUPS,
    SEGMENT_BYTES,
    SEPARATOR,
    STREAM,
    check_recovery,
    fails,
    open_and_append,
    play,
)
from tests.adapters.turns import Turns, append, become_quick, read


@pytest.mark.parametrize("call", ["write", "sync_data"])
def test_a_group_that_fails_while_the_loop_waits_is_final(call: str):
    disk, turns = SimulatedDisk(), Turns()
    journal = open_journal(disk, turns.call_soon, elapsed_seconds=lambda: 0.0)
    become_quick(turns, journal)
    end = journal.position
    disk.failing[call] = errno.EIO
    failed = journal.write(end, GROUPS[0], durably=True)
    assert isinstance(failed, Failed)
    disk.failing.clear()
    assert journal.write(end, GROUPS[0], durably=True) == failed, "never tried again"
    fails(turns, journal, GROUPS[0])
    journal.close()
    again = open_journal(disk.crashed(), turns.call_soon)
    assert again.position == end
    again.close()


@pytest.mark.parametrize("call", ["write", "sync_data"])
def test_failed_append_is_final_and_acknowledged_groups_survive(call: str):
    disk = SimulatedDisk()
    turns, journal = open_and_append(disk, GROUPS[:3])
    disk.failing[call] = errno.EIO
    reason = fails(turns, journal, GROUPS[3])
    assert call in reason
    disk.failing.clear()
    calls_before = len(disk.log)
    assert fails(turns, journal, GROUPS[3]) == reason
    assert len(disk.log) == calls_before  # it was not even tried
    journal.close()
    for left in (disk.restarted(), disk.crashed(), disk.crashed(keep_sector=lambda _: True)):
        check_recovery(left, GROUPS, 3, 4)


@pytest.mark.parametrize("call", ["create", "write", "sync", "sync_directory"])
def test_failed_roll_is_final_and_acknowledged_groups_survive(call: str):
    disk = SimulatedDisk()
    turns, journal = open_and_append(disk, FIRST_SEGMENT)
    acknowledged = len(FIRST_SEGMENT)
    disk.failing[call] = errno.EIO
    fails(turns, journal, GROUPS[acknowledged])
    disk.failing.clear()
    fails(turns, journal, GROUPS[acknowledged])
    journal.close()
    assert disk.open_handles == []
    for left in (disk.restarted(), disk.crashed(), disk.crashed(keep_sector=lambda _: True, keep_names=True)):
        play(left, GROUPS, check_recovery(left, GROUPS, acknowledged, acknowledged + 1))


def test_page_cache_is_not_believed_after_a_failed_sync():
    """A group that only the page cache has must not be replayed and then be lost: opening makes it durable first."""
    disk = SimulatedDisk()
    turns, journal = open_and_append(disk, GROUPS[:2])
    disk.failing["sync_data"] = errno.EIO
    fails(turns, journal, GROUPS[2])
    disk.failing.clear()
    journal.close()
    restarted = disk.restarted()
    assert check_recovery(restarted, GROUPS, 2, 3) == 3  # the pages are there to be read, though "clean"
    assert check_recovery(restarted.crashed(), GROUPS, 3, 3) == 3


def test_a_cut_is_not_believed_after_a_failed_sync():
    """A torn tail that only the page cache has lost would be back behind what follows, once the segment is sealed."""
    disk = SimulatedDisk()
    play(disk, GROUPS[:3])
    (name,) = [name for name in disk.files if name.endswith(".log")]
    disk.put(name, disk.content(name) + bytes(2 * SEGMENT_BYTES))
    disk.failing["sync"] = errno.EIO
    with pytest.raises(JournalError, match="sync"):
        open_journal(disk, Turns().call_soon, segment_bytes=SEGMENT_BYTES)
    disk.failing.clear()
    disk = disk.restarted()
    play(disk, GROUPS, 3)
    assert check_recovery(disk.crashed(), GROUPS, len(GROUPS), len(GROUPS)) == len(GROUPS)


def test_full_disk_fails_the_append_and_nothing_else():
    for free_bytes in range(0, 400, 13):
        disk = SimulatedDisk()
        turns, journal = open_and_append(disk, GROUPS[:1])
        disk.free_bytes = free_bytes
        assert "no space" in fails(turns, journal, GROUPS[1])
        journal.close()
        left = disk.restarted()
        play(left, GROUPS, check_recovery(left, GROUPS, 1, 1))


@pytest.mark.parametrize("write_limit", [1, 7, 512, 700])
def test_short_writes_are_continued(write_limit: int):
    disk = SimulatedDisk()
    disk.write_limit = write_limit
    play(disk, GROUPS)
    assert check_recovery(disk.crashed(), GROUPS, len(GROUPS), len(GROUPS)) == len(GROUPS)


def test_failed_snapshot_leaves_the_one_before_in_force():
    disk = SimulatedDisk()
    turns, journal = open_and_append(disk, GROUPS[:1])
    journal.save_snapshot(SEPARATOR.join(entry.event for entry in GROUPS[0]), journal.position)
    append(turns, journal, *GROUPS[1])
    for call in ("create", "sync", "rename"):
        disk.failing = {call: errno.ENOSPC}
        saved = turns.wait(lambda done: journal.save_snapshot(b"never", journal.position, done))
        assert isinstance(saved, Failed)
        assert call in saved.reason
    disk.failing = {}
    append(turns, journal, *GROUPS[2])
    journal.close()
    check_recovery(disk.crashed(keep_names=True), GROUPS, 3, 3)


def test_failed_segment_index_costs_nothing_but_time():
    disk = SimulatedDisk()
    turns, journal = open_and_append(disk, FIRST_SEGMENT)
    disk.failing["rename"] = errno.EIO
    append(turns, journal, *GROUPS[len(FIRST_SEGMENT)])
    journal.close()
    disk.failing.clear()
    assert not any(name.endswith(".index") for name in disk.files)
    check_recovery(disk, GROUPS, len(FIRST_SEGMENT) + 1, len(FIRST_SEGMENT) + 1)
    assert any(name.endswith(".index") for name in disk.files)


def test_failed_read_is_told():
    disk = SimulatedDisk()
    turns, journal = open_and_append(disk, GROUPS[:1])
    disk.failing = {"read": errno.EIO}
    extents = journal.find(STREAM, 0, 1, 1 << 30)
    assert journal.read_cached(extents) is None
    (result,) = turns.wait(lambda done: journal.read(extents, done))
    assert isinstance(result, Failed)
    disk.failing = {}
    assert read(turns, journal, extents) == GROUPS[0][0].payload[0]
    journal.close()


def test_opening_fails_where_recovery_cannot_make_the_tail_durable():
    disk = SimulatedDisk()
    play(disk, GROUPS[:2])
    disk.failing["sync"] = errno.EIO
    with pytest.raises(JournalError, match="simulated failure of sync") as caught:
        open_journal(disk, Turns().call_soon)
    assert not isinstance(caught.value, JournalDamaged)
    assert disk.open_handles == []
    assert disk.lock_count == 0
