"""Damage done to the files of a journal, and its repair, for the tests."""

from collections.abc import Callable

from exacta.adapters.local.damage.inspection import SoundGroup, inspect
from exacta.core.apply import apply
from exacta.core.event_codec import decode_event
from exacta.core.snapshot import restore
from exacta.core.state.state import State
from exacta.core.values.limits import Limits
from exacta.repair import Examination, Remedy, Way, apply_remedy, examine
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.turns import Turns
from tests.repairing import findings


def names(disk: SimulatedDisk, suffix: str) -> list[str]:
    return sorted(name for name in disk.files if name.endswith(suffix))


def fresh(disk: SimulatedDisk) -> SimulatedDisk:
    copy = SimulatedDisk()
    for name in disk.files:
        copy.put(name, disk.content(name))
    return copy


def state_of(disk: SimulatedDisk) -> State:
    """Open it as a server does; raise JournalError where that refuses."""
    journal = open_journal(fresh(disk), Turns().call_soon)
    try:
        blob, events = journal.replay()
        state = restore(blob, Limits())
        for event in events:
            apply(state, decode_event(event))
        return state
    finally:
        journal.close()


def places(disk: SimulatedDisk) -> list[SoundGroup]:
    return [each for each in inspect(disk) if isinstance(each, SoundGroup)]


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


def offsets_of(state: State) -> dict[str, object]:
    """Return the parts of a state that clients rely on most."""
    return {
        "partitions": [(each.topic, each.index, each.next_offset) for each in state.partitions.values()],
        "groups": {name: group.offsets for name, group in state.groups.items()},
        "writers": [(each.transactional_id, each.producer_id, each.phase) for each in state.transactional_ids.values()],
    }
