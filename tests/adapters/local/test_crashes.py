"""Power cuts at every point of the local journal's life: what was durable is there, and no group in part.

A history is played on the simulated disk: groups of several entries, appended or only written, rolls, segment indexes,
snapshots. Then the machine loses power after every single call to the disk, and in many ways each time; the journal is
opened on what is left.
"""

import errno
import logging
import random
from collections.abc import Iterator

import pytest

from exacta.adapters.local import LocalJournal
from exacta.ports.journal import AppendResult, Entry, Failed, JournalDamaged, JournalError
from simulation.disk.simulated import Operation, SimulatedDisk
from tests.adapters.turns import Turns, append, batch, become_quick, read

SEGMENT_BYTES = 1500
STREAM = 3
SEPARATOR = b"\n"

Groups = list[list[Entry]]


def make_groups(sizes: list[int]) -> Groups:
    """Return groups of one to three entries, whose payloads are together about as large as the sizes say."""
    groups: Groups = []
    offset = 0
    for number, size in enumerate(sizes):
        entries = []
        for part in range(1 + number % 3):
            data = bytes((number * 7 + part + at) % 256 for at in range(size // (1 + number % 3)))
            entries.append(batch(STREAM, offset, data))
            offset += 1
        groups.append(entries)
    return groups


GROUPS = make_groups([100, 300, 40, 500, 400, 200, 250, 1, 700, 30, 60])
FIRST_SEGMENT = GROUPS[:4]  # these fill it: the next append rolls
SNAPSHOT_AFTER = {3, 7, 9}  # numbers of groups
NONE_UNSYNCED: frozenset[int] = frozenset()
SOME_UNSYNCED = frozenset({1, 2, 5, 6, 8, 10})  # 8 is appended after all: the segment is full


def play(
    disk: SimulatedDisk, groups: Groups, done: int = 0, *, unsynced: frozenset[int] = NONE_UNSYNCED
) -> list[Operation]:
    """Append the groups from number `done` on, or only write them.

    Notes in the disk's log say how many were begun, written and acknowledged as durable.
    """
    turns = Turns()
    journal = LocalJournal.open(disk, turns.call_soon, segment_bytes=SEGMENT_BYTES)
    events = [entry.event for group in groups[:done] for entry in group]
    for number, group in enumerate(groups[done:], done):
        disk.note(("begun", number + 1))
        if number not in unsynced or journal.write(journal.position, group) is None:
            append(turns, journal, *group)
            disk.note(("acknowledged", number + 1))
        else:
            disk.note(("unsynced", number + 1))
        disk.note(("written", number + 1))
        events += [entry.event for entry in group]
        if number in SNAPSHOT_AFTER:
            blob = SEPARATOR.join(events)
            assert turns.wait(lambda saved, blob=blob: journal.save_snapshot(blob, journal.position, saved)) is None
    journal.close()
    assert disk.open_handles == []
    return disk.log


def noted(log: list[Operation], what: str) -> int:
    """Return how many groups were `what` in this part of the history."""
    notes = [operation[1] for operation in log if operation[0] == "note"]
    return max((number for kind, number in notes if kind == what), default=0)


def check_recovery(
    disk: SimulatedDisk, groups: Groups, acknowledged: int, begun: int, *, read_sealed: bool = True
) -> int:
    """Open what the crash left; return how many groups are there, all of them whole, and findable.

    Sealed segments are read on threads, whose start takes most of the time: tests of thousands of crashes go without.
    """
    turns = Turns()
    journal = LocalJournal.open(disk, turns.call_soon, segment_bytes=SEGMENT_BYTES)
    blob, replayed = journal.replay()
    events = [*(blob.split(SEPARATOR) if blob else []), *replayed]
    prefixes = range(acknowledged, begun + 1)
    kept = next((n for n in prefixes if [e.event for g in groups[:n] for e in g] == events), None)
    assert kept is not None, (acknowledged, begun, events)
    entries = [entry for group in groups[:kept] for entry in group]
    extents = journal.find(STREAM, 0, 1 << 60, 1 << 60)
    assert [(extent.first_offsets[0], extent.last_offset) for extent in extents[:1] + extents[-1:]] == (
        [(0, extents[0].last_offset), (extents[-1].first_offsets[0], len(entries) - 1)] if entries else []
    )
    if read_sealed:
        assert read(turns, journal, extents) == b"".join(entry.payload[0] for entry in entries)
    journal.close()
    assert disk.open_handles == []
    return kept


def every_crash(log: list[Operation]) -> Iterator[tuple[list[Operation], SimulatedDisk]]:
    """Yield the history up to each of its calls, and the disk at that moment."""
    for length in range(len(log) + 1):
        yield log[:length], SimulatedDisk.after(log[:length])


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
            crashed = disk.crashed(keep_sector=lambda _, keep=keep: keep, keep_names=keep_names)
            kept = check_recovery(crashed, GROUPS, acknowledged, begun)
            outcomes.add((kept - acknowledged, begun - acknowledged))
    # The test means something only if in-flight groups were both lost and kept.
    in_flight = {(0, 0), (0, 1), (1, 1)}
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
        crashed = disk.crashed(keep_sector=lambda sector, subset=subset: bool(subset >> sector & 1), grow=grow)
        kept = check_recovery(crashed, groups, 1, 2)
        assert kept == (2 if subset == (1 << changes) - 1 else 1)


def test_crash_that_keeps_random_sectors_at_every_call(history: list[Operation]):
    chance = random.Random(20261121)
    for log, disk in every_crash(history):
        if disk.unsynced_changes():
            for _ in range(10):
                lost = {sector for sector in range(disk.unsynced_changes()) if chance.random() < 0.5}
                crashed = disk.crashed(
                    keep_sector=lambda sector, lost=lost: sector not in lost,
                    grow=chance.random() < 0.5,
                    keep_names=chance.random() < 0.5,
                )
                check_recovery(crashed, GROUPS, noted(log, "acknowledged"), noted(log, "begun"))


def test_crash_during_recovery_at_every_call(history: list[Operation]):
    """Recovery writes, too: cut it short anywhere and recover again."""
    chance = random.Random(4)
    for log, disk in every_crash(history):
        if not disk.unsynced_changes():
            continue
        acknowledged, begun = noted(log, "acknowledged"), noted(log, "begun")
        first = disk.crashed(keep_bytes=chance.randrange(disk.unsynced_bytes() + 1), keep_names=True)
        before_recovery = len(first.log)
        kept = check_recovery(first, GROUPS, acknowledged, begun)
        for length in range(before_recovery, len(first.log) + 1):
            interrupted = SimulatedDisk.after(first.log[:length])
            for keep in (False, True):
                second = interrupted.crashed(keep_sector=lambda _, keep=keep: keep, keep_names=keep)
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
    chance = random.Random(8)
    missed = 0
    for log, disk in every_crash(play(SimulatedDisk(), GROUPS, unsynced=SOME_UNSYNCED)):
        acknowledged, written, begun = (noted(log, what) for what in ("acknowledged", "written", "begun"))
        if "tail" in disk.files:  # else it says so in vain: the first group has only just become durable
            assert not opened(disk.restarted()).may_have_lost
        assert check_recovery(disk.restarted(), GROUPS, written, begun) >= written
        for keep in (False, True, None):
            crashed = disk.crashed(
                keep_sector=lambda _, keep=keep: chance.random() < 0.5 if keep is None else keep, keep_names=True
            )
            may_have_lost = opened(crashed).may_have_lost
            assert opened(crashed).may_have_lost == may_have_lost, "until a group was appended"
            if check_recovery(crashed, GROUPS, acknowledged, begun) < written:
                assert may_have_lost
                missed += 1
    assert missed
    assert not opened(disk.crashed()).may_have_lost, "a clean stop loses nothing"


def opened(disk: SimulatedDisk) -> LocalJournal:
    """Open and close."""
    journal = LocalJournal.open(disk, Turns().call_soon, segment_bytes=SEGMENT_BYTES)
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
    chance = random.Random(5)
    for log, disk in every_crash(history):
        acknowledged, begun = noted(log, "acknowledged"), noted(log, "begun")
        crashed = disk.crashed(keep_sector=lambda _: chance.random() < 0.8, keep_names=chance.random() < 0.5)
        kept = check_recovery(crashed, GROUPS, acknowledged, begun)
        play(crashed, GROUPS, kept)
        assert check_recovery(crashed.crashed(), GROUPS, len(GROUPS), len(GROUPS)) == len(GROUPS)


# --- failing calls ----------------------------------------------------------------------------------------------------


def open_and_append(disk: SimulatedDisk, groups: Groups) -> tuple[Turns, LocalJournal]:
    turns = Turns()
    journal = LocalJournal.open(disk, turns.call_soon, segment_bytes=SEGMENT_BYTES)
    for group in groups:
        assert journal.position < SEGMENT_BYTES
        append(turns, journal, *group)
    assert (journal.position >= SEGMENT_BYTES) == (groups == FIRST_SEGMENT)
    return turns, journal


def fails(turns: Turns, journal: LocalJournal, group: list[Entry]) -> str:
    result: AppendResult = turns.wait(lambda done: journal.append(journal.position, group, done))
    assert isinstance(result, Failed)
    return result.reason


@pytest.mark.parametrize("call", ["write", "sync_data"])
def test_a_group_that_fails_while_the_loop_waits_is_final(call: str):
    disk, turns = SimulatedDisk(), Turns()
    journal = LocalJournal.open(disk, turns.call_soon, elapsed_seconds=lambda: 0.0)
    become_quick(turns, journal)
    end = journal.position
    disk.failing[call] = errno.EIO
    failed = journal.write(end, GROUPS[0], durably=True)
    assert isinstance(failed, Failed)
    disk.failing.clear()
    assert journal.write(end, GROUPS[0], durably=True) == failed, "never tried again"
    fails(turns, journal, GROUPS[0])
    journal.close()
    again = LocalJournal.open(disk.crashed(), turns.call_soon)
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
        LocalJournal.open(disk, Turns().call_soon)
    assert not isinstance(caught.value, JournalDamaged)
    assert disk.open_handles == []
    assert disk.lock_count == 0
