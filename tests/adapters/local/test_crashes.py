"""Power cuts at every point of the local journal's life: what was durable is there, and no group in part.

A history is played on the simulated disk: groups of several entries, appended or only written, rolls, segment indexes,
snapshots. Then the machine loses power after every single call to the disk, and in many ways each time; the journal is
opened on what is left.
"""

import errno
import logging

import pytest

from exacta.adapters.local import LocalJournal
from exacta.ports.journal import Failed
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import Operation, SimulatedDisk
from tests.adapters.local.histories import (
    GROUPS,
    NONE_UNSYNCED,
    SEGMENT_BYTES,
    SOME_UNSYNCED,
    check_recovery,
    dice_of,
    every_crash,
    fails,
    make_groups,
    noted,
    open_and_append,
    play,
)
from tests.adapters.turns import Turns
from tests.sectors import all_but, all_or_none, by_chance, of_bits
from tests.shares import is_whole


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)  # thousands of torn tails, each worth a warning


@pytest.fixture(scope="module", params=[NONE_UNSYNCED, SOME_UNSYNCED], ids=["appended", "some only written"])
def history(request: pytest.FixtureRequest) -> list[Operation]:
    return play(SimulatedDisk(), GROUPS, unsynced=request.param)


def test_history_has_what_the_crashes_are_meant_for(history: list[Operation]):
    names = {operation[1] for operation in history if operation[0] in ("create", "rename")}
    assert sum(name.endswith(".log") for name in names) == 3
    assert sum(operation[0] == "rename" and operation[2].endswith(".snapshot") for operation in history) == 3
    assert sum(operation[0] == "rename" and operation[2].endswith(".index") for operation in history) == 2
    assert any(operation[0] == "remove" for operation in history)


@pytest.mark.parametrize("keep_names", [False, True])
def test_crash_after_every_call_that_loses_all_or_nothing_unsynced(history: list[Operation], keep_names: bool):
    outcomes = set()
    for log, disk in every_crash(history):
        acknowledged, begun = noted(log, "acknowledged"), noted(log, "begun")
        for keep in (False, True):
            crashed = disk.crashed(keep_sector=all_or_none(keep), keep_names=keep_names)
            kept = check_recovery(crashed, GROUPS, acknowledged, begun)
            outcomes.add((kept - acknowledged, begun - acknowledged))
    # The test means something only if in-flight groups were both lost and kept.
    in_flight = {(0, 0), (0, 1), (1, 1)}
    if is_whole():
        assert outcomes == in_flight if noted(history, "unsynced") == 0 else outcomes > in_flight


@pytest.mark.parametrize("grow", [False, True])
def test_crash_at_every_byte_of_every_write(history: list[Operation], grow: bool):
    for log, disk in every_crash(history):
        if log and log[-1][0] == "write":
            acknowledged, begun = noted(log, "acknowledged"), noted(log, "begun")
            unsynced = disk.unsynced_bytes()
            for keep_bytes in range(unsynced):
                crashed = disk.crashed(keep_bytes=keep_bytes, grow=grow, keep_names=True)
                check_recovery(crashed, GROUPS, acknowledged, begun, read_sealed=False)


@pytest.mark.parametrize("grow", [False, True])
def test_crash_that_keeps_any_subset_of_the_sectors_of_a_group(grow: bool):
    groups = make_groups([700, 3500])
    disk = SimulatedDisk()
    log = play(disk, groups)
    writes = (number for number, operation in enumerate(log) if operation[0] == "write" and operation[1] != "tail")
    last_write = max(writes)
    disk = SimulatedDisk.after(log[: last_write + 1])
    changes = disk.unsynced_changes()
    assert changes >= 8
    for subset in range(1 << changes):
        crashed = disk.crashed(keep_sector=of_bits(subset), grow=grow)
        kept = check_recovery(crashed, groups, 1, 2)
        assert kept == (2 if subset == (1 << changes) - 1 else 1)


def test_crash_that_keeps_random_sectors_at_every_call(history: list[Operation]):
    for log, disk in every_crash(history):
        chance = dice_of(log)
        if disk.unsynced_changes():
            for _ in range(10):
                lost = {sector for sector in range(disk.unsynced_changes()) if chance.random() < 0.5}
                crashed = disk.crashed(
                    keep_sector=all_but(lost),
                    grow=chance.random() < 0.5,
                    keep_names=chance.random() < 0.5,
                )
                check_recovery(crashed, GROUPS, noted(log, "acknowledged"), noted(log, "begun"))


def test_crash_during_recovery_at_every_call(history: list[Operation]):
    """Recovery writes, too: cut it short anywhere and recover again."""
    for log, disk in every_crash(history):
        if not disk.unsynced_changes():
            continue
        acknowledged, begun = noted(log, "acknowledged"), noted(log, "begun")
        first = disk.crashed(keep_bytes=dice_of(log).randrange(disk.unsynced_bytes() + 1), keep_names=True)
        before_recovery = len(first.log)
        kept = check_recovery(first, GROUPS, acknowledged, begun)
        for length in range(before_recovery, len(first.log) + 1):
            interrupted = SimulatedDisk.after(first.log[:length])
            for keep in (False, True):
                second = interrupted.crashed(keep_sector=all_or_none(keep), keep_names=keep)
                assert check_recovery(second, GROUPS, acknowledged, begun) == kept


def test_what_a_killed_process_left_in_the_page_cache_is_made_durable(history: list[Operation]):
    """The process dies, the machine lives on, a second process builds on what it reads, then the power goes."""
    for log, disk in every_crash(history):
        kept = check_recovery(disk, GROUPS, noted(log, "acknowledged"), noted(log, "begun"))
        assert check_recovery(disk.crashed(), GROUPS, kept, kept) == kept
        more = GROUPS[: kept + 1]  # no further, for the next snapshot would sync the directory for us
        play(disk, more, kept)
        assert check_recovery(disk.crashed(), GROUPS, len(more), len(more)) == len(more)


def test_whoever_opens_is_told_whether_a_write_may_be_missing():
    """Nothing is when only the process died; and what is missing after the machine stopped never goes unnoticed."""
    missed = 0
    whole = play(SimulatedDisk(), GROUPS, unsynced=SOME_UNSYNCED)
    for log, disk in every_crash(whole):
        acknowledged, written, begun = (noted(log, what) for what in ("acknowledged", "written", "begun"))
        if "tail" in disk.files:  # else it says so in vain: the first group has only just become durable
            assert not opened(disk.restarted()).may_have_lost
        assert check_recovery(disk.restarted(), GROUPS, written, begun) >= written
        for keep in (False, True, None):
            crashed = disk.crashed(
                keep_sector=by_chance(dice_of(log), 0.5) if keep is None else all_or_none(keep), keep_names=True
            )
            may_have_lost = opened(crashed).may_have_lost
            assert opened(crashed).may_have_lost == may_have_lost, "until a group was appended"
            if check_recovery(crashed, GROUPS, acknowledged, begun) < written:
                assert may_have_lost
                missed += 1
    assert missed or not is_whole()
    assert not opened(SimulatedDisk.after(whole).crashed()).may_have_lost, "a clean stop loses nothing"


def opened(disk: SimulatedDisk) -> LocalJournal:
    """Open and close."""
    journal = open_journal(disk, Turns().call_soon, segment_bytes=SEGMENT_BYTES)
    journal.close()
    return journal


def test_a_write_that_the_kernel_lost_after_a_failed_sync_is_noticed():
    disk = SimulatedDisk()
    turns, journal = open_and_append(disk, GROUPS[:2])
    assert journal.write(journal.position, GROUPS[2]) is not None
    disk.failing["sync_data"] = errno.EIO
    fails(turns, journal, GROUPS[3])
    disk.failing.clear()
    journal.close()
    assert not opened(disk.restarted()).may_have_lost, "the pages are still there"
    left = disk.restarted()
    segment = left.files["00000000000000000000.log"]
    segment.content = bytearray(segment.durable)  # now the kernel needs the memory for something else
    assert opened(left).may_have_lost
    check_recovery(left, GROUPS, 2, 2)


def test_where_the_machine_has_no_name_for_its_run_a_write_may_be_missing(monkeypatch: pytest.MonkeyPatch):
    disk = SimulatedDisk()
    play(disk, GROUPS[:2])
    monkeypatch.setattr(SimulatedDisk, "boot_id", lambda _: "")
    assert not opened(disk.restarted()).may_have_lost, "a clean stop needs none"
    running = SimulatedDisk()
    _, journal = open_and_append(running, GROUPS[:2])
    assert opened(running.restarted()).may_have_lost
    journal.close()


@pytest.mark.parametrize("call", ["write", "full"])
def test_a_failed_write_is_final_and_what_was_written_survives_the_process(call: str):
    disk = SimulatedDisk()
    turns, journal = open_and_append(disk, GROUPS[:1])
    assert journal.write(journal.position, GROUPS[1]) is not None
    if call == "full":
        disk.free_bytes = 20
    else:
        disk.failing["write"] = errno.EIO
    failed = journal.write(journal.position, GROUPS[2])
    assert isinstance(failed, Failed)
    disk.failing.clear()
    disk.free_bytes = 1 << 30
    assert journal.write(journal.position, GROUPS[2]) == failed
    fails(turns, journal, GROUPS[2])
    journal.close()
    check_recovery(disk.restarted(), GROUPS, 2, 2)


@pytest.mark.parametrize("content", [None, b"", b"nonsense", bytes(64)])
def test_without_a_note_of_the_end_a_write_may_be_missing(content: bytes | None):
    disk = SimulatedDisk()
    play(disk, GROUPS[:2])
    if content is None:
        disk.remove("tail")
    else:
        disk.put("tail", content)
    assert opened(disk).may_have_lost
    play(disk, GROUPS, 2)
    assert not opened(disk).may_have_lost


def test_journal_goes_on_after_a_crash(history: list[Operation]):
    """Whatever the crash left, the rest of the history can follow, and another crash loses none of it."""
    for log, disk in every_crash(history):
        chance = dice_of(log)
        acknowledged, begun = noted(log, "acknowledged"), noted(log, "begun")
        crashed = disk.crashed(keep_sector=by_chance(chance, 0.8), keep_names=chance.random() < 0.5)
        kept = check_recovery(crashed, GROUPS, acknowledged, begun)
        play(crashed, GROUPS, kept)
        assert check_recovery(crashed.crashed(), GROUPS, len(GROUPS), len(GROUPS)) == len(GROUPS)
