"""Cleanings of the local journal on a simulated disk: a history of some, and what must be there afterwards."""

from exacta.adapters.local import LocalJournal
from exacta.adapters.local.damage.inspection import Finding, inspect
from exacta.ports.journal import Cleaned, JournalEntry
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import Operation, SimulatedDisk
from tests.adapters.turns import Turns, append, batch, read

SEGMENT_BYTES = 1500
EVERYTHING = 1 << 40
COUNT = 30
FLOORS = ({1: 4, 2: 0}, {1: 9, 2: 2}, {1: 15, 2: 6}, {1: 16, 3: 0})
"""The floors of four cleanings, from the middle and the front. At last stream 2 is gone, and stream 3 has not come."""


def opened(disk: SimulatedDisk, turns: Turns) -> LocalJournal:
    return open_journal(disk, turns.call_soon, segment_bytes=SEGMENT_BYTES)


def data(stream: int, number: int) -> bytes:
    return b"%d:%02d;" % (stream, number) * 40


def append_some(turns: Turns, journal: LocalJournal, begin: int, end: int) -> None:
    """Append to two streams in turn; the first one has all of some segments to itself."""
    for number in range(begin, end):
        stream = 1 if number % 3 or number > 20 else 2
        offset = 1 + max((extent.last_offset for extent in journal.find(stream, 0, EVERYTHING, EVERYTHING)), default=-1)
        append(turns, journal, batch(stream, offset, data(stream, offset)))


def snapshot(turns: Turns, journal: LocalJournal) -> None:
    append(turns, journal, JournalEntry(b"event"))
    assert turns.wait(lambda done: journal.save_snapshot(b"%d" % journal.position, journal.position, done)) is None


def clean(turns: Turns, journal: LocalJournal, floors: dict[int, int]) -> int:
    steps = 0
    while isinstance(result := turns.wait(lambda done: journal.clean(floors, done)), Cleaned) and result.freed_bytes:
        steps += 1
    return steps


def content(turns: Turns, journal: LocalJournal, floors: dict[int, int]) -> dict[int, bytes]:
    return {
        stream: read(turns, journal, journal.find(stream, floor, EVERYTHING, EVERYTHING))
        for stream, floor in floors.items()
    }


def play(disk: SimulatedDisk) -> list[Operation]:
    turns = Turns()
    journal = opened(disk, turns)
    append_some(turns, journal, 0, COUNT)
    for _ in range(2):
        snapshot(turns, journal)
    disk.note(("filled", content(turns, journal, {1: 0, 2: 0}), journal.position))
    for floors in FLOORS:
        disk.note(("floors", floors))
        assert clean(turns, journal, floors)
    journal.close()
    assert disk.open_handles == []
    return disk.log


def check(disk: SimulatedDisk, floors: dict[int, int], whole: dict[int, bytes], position: int) -> None:
    """Open what is left: all from the floors on is there; the directory holds nothing that is not needed."""
    turns = Turns()
    journal = opened(disk, turns)
    assert journal.position == position
    blob, events = journal.replay()
    assert blob == b"%d" % position
    assert list(events) == []
    size = len(data(1, 0))
    wanted = {stream: whole.get(stream, b"")[floor * size :] for stream, floor in floors.items()}
    assert content(turns, journal, floors) == wanted
    journal.close()
    assert disk.open_handles == []
    assert [found for found in inspect(disk) if isinstance(found, Finding)] == []
    segments = {name.removesuffix(".log") for name in disk.names() if name.endswith(".log")}
    assert {name.removesuffix(".index") for name in disk.names() if name.endswith(".index")} < segments
    assert not [name for name in disk.names() if name.endswith(".tmp")]


def names_of(disk: SimulatedDisk, suffix: str) -> list[str]:
    return sorted(name for name in disk.names() if name.endswith(suffix))
