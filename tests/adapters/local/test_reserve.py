"""The reserve of the disk: when it is filled and cut, what may be written meanwhile, and a write that meets its end."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from exacta.adapters.local import LocalJournal
from exacta.adapters.local.space.reserve import NAME, PLENTY_BYTES, Reserve
from exacta.ports.journal import Failed, GroupAppended, Room
from simulation.disk.in_place import InPlace
from tests.adapters.turns import Turns, append, batch
from tests.docstring_tables import docstring_table
from tests.small_disk_server import SmallDisk

KIB = 1 << 10
WHOLE = 80 * KIB
TOTAL = 8 * WHOLE


class Disk(SmallDisk):
    """A small disk, of which a test takes a part."""

    total = TOTAL
    taken = 0

    def available_bytes(self) -> int:
        return max(0, super().available_bytes() - self.taken)

    def leave(self, free: int) -> None:
        """Let others take all free bytes but this many."""
        self.taken = 0
        self.taken = self.available_bytes() - free


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path)
    disk.lock()
    yield disk
    disk.unlock()


def size(disk: Disk) -> int:
    return os.stat(disk.directory / NAME).st_size if NAME in disk.names() else 0


def begun(disk: Disk, most: int = WHOLE) -> Reserve:
    reserve = Reserve(disk, most)
    reserve.begin()
    return reserve


@pytest.mark.parametrize(
    ("free", "left", "room"),
    [
        # free, with the whole reserve beside it -> what is left of that, and the room
        (WHOLE, WHOLE, Room(WHOLE * 3 // 4, is_used_up=False, is_low=False)),
        (WHOLE // 2 - 1, WHOLE, Room(WHOLE // 4 - 1, is_used_up=False, is_low=True)),
        (WHOLE // 4, WHOLE, Room(0, is_used_up=False)),
        (WHOLE // 4 - 1, WHOLE // 4, Room(0, is_used_up=False)),
        (0, WHOLE // 4, Room(0, is_used_up=False)),
    ],
)
def test_it_is_cut_where_little_is_free(disk: Disk, free: int, left: int, room: Room) -> None:
    reserve = begun(disk)
    assert size(disk) == WHOLE
    disk.leave(free)
    assert reserve.measure(None) == room
    assert size(disk) == left
    reserve.close()


TABLE = docstring_table("exacta.adapters.local.space.reserve", "spare is")
SPARES = {
    "at least 3/2 of `whole`": (WHOLE * 3 // 2, WHOLE * 2),
    "between": (WHOLE * 5 // 4, WHOLE * 3 // 2 - 1),
    "below 5/4 of `whole`": (WHOLE // 4, WHOLE * 5 // 4 - 1),
    "below 1/4 of `whole`": (0, WHOLE // 4 - 1),
}


@pytest.mark.parametrize("highest", [False, True])
@pytest.mark.parametrize("row", TABLE.rows)
def test_every_row_of_the_table(disk: Disk, row: str, highest: bool) -> None:
    spare = SPARES[row][highest]
    for held in (WHOLE, WHOLE // 4):
        reserve = begun(disk)
        if held < WHOLE:
            disk.leave(0)
            reserve.measure(None)
        held = min(held, spare)
        while size(disk) > held:
            reserve.give(1)
        held = size(disk)
        disk.leave(spare - held)
        room = reserve.measure(None)
        reserve.fill()
        assert room is not None
        files = {"is filled": WHOLE, "stays as it is": held, "is cut to a quarter": min(held, WHOLE // 4)}
        wanted = files[TABLE[row, "the file"]]
        assert size(disk) == wanted or (wanted == held and disk.available_bytes() >= WHOLE // 32)
        batches = TABLE[row, "batches"]
        assert room.append_bytes == (spare - WHOLE * 5 // 4 if batches.startswith("what is above 5/4") else 0)
        assert room.is_low is (batches != "what is above 5/4")
        assert room.is_used_up is (TABLE[row, "small events"] == "only what frees or ends something")
        reserve.close()
        disk.leave(disk.total)
        (disk.directory / NAME).unlink()


def test_the_last_quarter_goes_where_nothing_else_is_left_and_comes_back(disk: Disk) -> None:
    reserve = begun(disk)
    disk.leave(0)
    reserve.measure(None)
    for left in (3, 2, 1, 0):
        disk.leave(WHOLE // 32)
        assert reserve.measure(None) == Room(0, is_used_up=left < 3)
        assert size(disk) == (left + 1) * WHOLE // 16, "nothing is given without need"
        disk.leave(WHOLE // 32 - 1)
        assert reserve.measure(None) == Room(0, is_used_up=left < 3)
        assert size(disk) == left * WHOLE // 16
    disk.leave(WHOLE * 3 // 2 - 1)
    reserve.fill()
    assert size(disk) == 0, "it would take what commits need"
    disk.leave(WHOLE * 3 // 2)
    reserve.fill()
    assert size(disk) == WHOLE
    reserve.close()


@pytest.mark.parametrize("free", [0, WHOLE // 16, WHOLE])
def test_a_start_finds_room(disk: Disk, free: int) -> None:
    begun(disk).close()
    disk.leave(free)
    reserve = begun(disk)
    assert disk.available_bytes() >= WHOLE // 16
    reserve.close()


def test_it_is_at_most_an_eighth_of_the_disk_and_nothing_is_counted_where_there_is_plenty(disk: Disk) -> None:
    reserve = begun(disk, 1 << 40)
    assert size(disk) == TOTAL // 8
    assert reserve.measure(None) is not None
    reserve.close()
    disk.total = 2 * PLENTY_BYTES
    plenty = begun(disk, WHOLE)
    assert plenty.measure(None) is None
    plenty.close()


def test_without_one_nothing_is_measured(disk: Disk) -> None:
    reserve = begun(disk, 0)
    disk.leave(0)
    assert reserve.measure(None) is None
    assert not reserve.give(1)
    assert size(disk) == 0


def test_a_disk_that_does_not_say_is_as_before(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    reserve = begun(disk)

    def fails() -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(disk, "available_bytes", fails)
    assert reserve.measure(Room(7, is_used_up=False)) == Room(7, is_used_up=False)
    reserve.close()


def opened(directory: Path) -> tuple[Disk, Turns, LocalJournal]:
    disk, turns = Disk(directory), Turns()
    runner = InPlace(disk)
    return disk, turns, LocalJournal.open(disk, turns.call_soon, reserve_bytes=WHOLE, job_runner=runner)


@pytest.mark.parametrize("free", [0, 1, 500, 4_999])
def test_a_write_that_meets_a_full_disk_is_made_once_more_out_of_the_reserve(tmp_path: Path, free: int) -> None:
    """A part of it may be there: the same bytes go to the same place, and nothing of it was synced."""
    disk, turns, journal = opened(tmp_path)
    append(turns, journal, batch(1, 0, b"a" * 100))
    disk.leave(free)
    append(turns, journal, batch(1, 1, b"b" * 5_000))
    assert size(disk) < WHOLE
    end = journal.position
    journal.close()
    _, turns, again = opened(tmp_path)
    assert again.position == end
    assert len(list(again.replay()[1])) == 2
    again.close()


def test_a_write_that_does_not_fit_into_the_reserve_is_final(tmp_path: Path) -> None:
    disk, turns, journal = opened(tmp_path)
    append(turns, journal, batch(1, 0, b"a" * 100))
    end = journal.position
    disk.leave(0)
    failed = turns.wait(lambda done: journal.append(journal.position, [batch(1, 1, b"b" * 2 * WHOLE)], done))
    assert isinstance(failed, Failed)
    journal.close()
    _, _, again = opened(tmp_path)
    assert again.position == end, "what was written of it is cut off"
    again.close()


def test_a_sync_that_meets_a_full_disk_is_never_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, turns, journal = opened(tmp_path)
    append(turns, journal, batch(1, 0, b"a" * 100))
    syncs = []

    def full(handle: int) -> None:
        syncs.append(handle)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(disk, "sync_data", full)
    failed = turns.wait(lambda done: journal.append(journal.position, [batch(1, 1, b"b")], done))
    assert isinstance(failed, Failed)
    assert not isinstance(failed, GroupAppended)
    assert len(syncs) == 1
    assert size(disk) == WHOLE
    monkeypatch.undo()
    journal.close()
