"""Histories of the local journal on a simulated disk, which tests of crashes, failures and damage play."""

import random
from collections.abc import Iterator

from exacta.adapters.local import LocalJournal
from exacta.ports.journal import AppendResult, Failed, JournalEntry
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import Operation, SimulatedDisk
from tests.adapters.turns import Turns, append, batch, read
from tests.shares import share_of

SEGMENT_BYTES = 1500
STREAM = 3
SEPARATOR = b"\n"

Groups = list[list[JournalEntry]]


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
    journal = open_journal(disk, turns.call_soon, segment_bytes=SEGMENT_BYTES)
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
    journal = open_journal(disk, turns.call_soon, segment_bytes=SEGMENT_BYTES)
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
    """Yield the history up to each of its calls that is in the share, and the disk at that moment."""
    for length in share_of(range(len(log) + 1)):
        yield log[:length], SimulatedDisk.after(log[:length])


def dice_of(log: list[Operation]) -> random.Random:
    """Return the dice of a crash after this part of a history: a share throws the same as the whole."""
    return random.Random(len(log))


def open_and_append(disk: SimulatedDisk, groups: Groups) -> tuple[Turns, LocalJournal]:
    turns = Turns()
    journal = open_journal(disk, turns.call_soon, segment_bytes=SEGMENT_BYTES)
    for group in groups:
        assert journal.position < SEGMENT_BYTES
        append(turns, journal, *group)
    assert (journal.position >= SEGMENT_BYTES) == (groups == FIRST_SEGMENT)
    return turns, journal


def fails(turns: Turns, journal: LocalJournal, group: list[JournalEntry]) -> str:
    result: AppendResult = turns.wait(lambda done: journal.append(journal.position, group, done))
    assert isinstance(result, Failed)
    return result.reason
