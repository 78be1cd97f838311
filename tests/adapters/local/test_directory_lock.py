"""The lock of a data directory: what is done to the directory and its files while a journal has them open."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from exacta.adapters.local import DirectoryInUse, LocalJournal
from exacta.adapters.local import directory_lock as module
from exacta.adapters.local.files import PosixFiles
from exacta.ports.journal import Failed, JournalEntry
from exacta.posix import fcntl
from tests.adapters.turns import Turns, append
from tests.docstring_tables import docstring_table

OPEN = """
import sys
from pathlib import Path
from exacta.adapters.local import DirectoryInUse, LocalJournal
try:
    LocalJournal.open(Path(sys.argv[1]), lambda *args: None).close()
except DirectoryInUse as error:
    print(error, end="")
"""


def opened_elsewhere(directory: Path) -> str:
    """Open the journal in another process; return why it is refused, or nothing."""
    done = subprocess.run([sys.executable, "-c", OPEN, directory], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def append_fails(turns: Turns, journal: LocalJournal) -> bool:
    """Append one more, and return whether it was refused."""
    result = turns.wait(lambda done: journal.append(journal.position, [JournalEntry(b"b")], done))
    return isinstance(result, Failed)


def remove_lock(journal: Path) -> None:
    (journal / "lock").unlink()


def replace_lock(journal: Path) -> None:
    (journal / "lock").unlink()
    (journal / "lock").touch()


def rename_lock(journal: Path) -> None:
    (journal / "lock").rename(journal / "lock.old")


def leave(journal: Path) -> None:
    """Do nothing."""


@pytest.mark.parametrize("change", [leave, remove_lock, replace_lock, rename_lock])
def test_the_directory_is_one_processs_whatever_becomes_of_the_lock_file(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    turns = Turns()
    journal = LocalJournal.open(tmp_path / "journal", turns.call_soon)
    append(turns, journal, JournalEntry(b"a"))
    change(tmp_path / "journal")
    before = sorted(os.listdir(tmp_path / "journal"))
    assert opened_elsewhere(tmp_path / "journal") == f"{tmp_path / 'journal'} is in use by another journal"
    assert sorted(os.listdir(tmp_path / "journal")) == before, "and nothing is made"
    append(turns, journal, JournalEntry(b"b"))
    journal.close()
    assert opened_elsewhere(tmp_path / "journal") == ""


def move(journal: Path) -> None:
    journal.rename(journal.parent / "moved")


def replace(journal: Path) -> None:
    move(journal)
    shutil.copytree(journal.parent / "moved", journal)


def replace_by_an_empty_one(journal: Path) -> None:
    move(journal)
    journal.mkdir()


def move_all(journal: Path) -> None:
    journal.parent.rename(journal.parent.with_name("moved"))


def remove(journal: Path) -> None:
    shutil.rmtree(journal)


@pytest.mark.parametrize("change", [move, move_all, replace, replace_by_an_empty_one, remove])
@pytest.mark.parametrize("begins_segment", [False, True])
def test_nothing_is_acknowledged_once_the_directory_is_elsewhere(
    tmp_path: Path, change: Callable[[Path], None], begins_segment: bool
) -> None:
    """The next start would look where it was, and find none of it."""
    turns, directory = Turns(), tmp_path / "data" / "journal"
    journal = LocalJournal.open(directory, turns.call_soon, segment_bytes=1 if begins_segment else 1 << 20)
    append(turns, journal, JournalEntry(b"a"))
    change(directory)
    there = sorted(os.listdir(directory)) if directory.exists() else None
    assert append_fails(turns, journal)
    assert (sorted(os.listdir(directory)) if directory.exists() else None) == there, "nor written into another"
    journal.close()


def remove_segment(journal: Path) -> None:
    (segment,) = (each for each in journal.iterdir() if each.suffix == ".log")
    segment.unlink()


def copy(journal: Path) -> None:
    unfinished = shutil.ignore_patterns("*.tmp")  # the journal may be making one, which is renamed then
    shutil.copytree(journal, journal.parent / "copy", copy_function=os.link, ignore=unfinished)


TABLE = docstring_table("exacta.adapters.local.directory_lock", "while the journal is open")
CHANGES: dict[str, list[Callable[[Path], None]]] = {
    "the file `lock` is removed or replaced": [remove_lock, replace_lock],
    "the directory is moved or replaced": [move, replace_by_an_empty_one],
    "the directory is copied by hard links": [copy],
    "the segment that is written to is removed": [remove_segment],
}


@pytest.mark.parametrize(("row", "change"), [(row, change) for row in TABLE.rows for change in CHANGES[row]])
def test_every_row_of_the_table(tmp_path: Path, row: str, change: Callable[[Path], None]) -> None:
    turns, directory = Turns(), tmp_path / "journal"
    journal = LocalJournal.open(directory, turns.call_soon)
    append(turns, journal, JournalEntry(b"a"))
    change(directory)
    next_opening = TABLE[row, "the next opening"]
    match next_opening:
        case "is refused":
            assert "is in use by another journal" in opened_elsewhere(directory)
        case "of the copy is refused":
            assert "is in use by another journal" in opened_elsewhere(tmp_path / "copy")
        case "opens another directory":
            assert opened_elsewhere(directory) == ""
        case "finds that it is missing":
            pass  # while the holder is there, the directory is its own: the next one looks below
        case other:
            raise AssertionError(other)
    assert append_fails(turns, journal) is {"goes on": False, "fails at its next sync": True}[TABLE[row, "the holder"]]
    journal.close()
    again = LocalJournal.open(directory, turns.call_soon)
    assert again.may_have_lost is (next_opening == "finds that it is missing")
    again.close()


def test_a_directory_that_comes_back_is_opened_with_all_that_was_acknowledged(tmp_path: Path) -> None:
    turns, directory = Turns(), tmp_path / "journal"
    journal = LocalJournal.open(directory, turns.call_soon)
    append(turns, journal, JournalEntry(b"a"))
    move(directory)
    assert append_fails(turns, journal)
    journal.close()
    (tmp_path / "moved").rename(directory)
    again = LocalJournal.open(directory, turns.call_soon)
    assert next(iter(again.replay()[1])) == b"a"
    again.close()


def test_a_link_that_leads_elsewhere_is_another_directory(tmp_path: Path) -> None:
    turns, link = Turns(), tmp_path / "link"
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    link.symlink_to(tmp_path / "one")
    journal = LocalJournal.open(link / "journal", turns.call_soon)
    append(turns, journal, JournalEntry(b"a"))
    link.unlink()
    link.symlink_to(tmp_path / "two")
    assert append_fails(turns, journal)
    journal.close()


def test_the_working_directory_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns()
    monkeypatch.chdir(tmp_path)
    journal = LocalJournal.open(Path("journal"), turns.call_soon, segment_bytes=1)
    monkeypatch.chdir("/")
    append(turns, journal, JournalEntry(b"a"))
    append(turns, journal, JournalEntry(b"b"))
    journal.close()


@pytest.mark.parametrize("begins_segment", [False, True])
def test_a_copy_of_hard_links_is_refused_while_its_segment_is_written_to(tmp_path: Path, begins_segment: bool) -> None:
    turns = Turns()
    journal = LocalJournal.open(tmp_path / "journal", turns.call_soon, segment_bytes=1 if begins_segment else 1 << 20)
    for _ in range(2):
        append(turns, journal, JournalEntry(b"a"))
    copy(tmp_path / "journal")
    assert opened_elsewhere(tmp_path / "copy") == f"{tmp_path / 'copy'} is in use by another journal"
    with pytest.raises(DirectoryInUse):
        LocalJournal.open(tmp_path / "copy", turns.call_soon)
    append(turns, journal, JournalEntry(b"b"))
    journal.close()
    again = LocalJournal.open(tmp_path / "journal", turns.call_soon)
    assert list(again.replay()[1]) == [b"a", b"a", b"b"]
    again.close()


class TestWhereDirectoriesCannotBeLocked:
    @pytest.fixture(autouse=True)
    def no_directory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        flock = fcntl.flock

        def of_files(handle: int, operation: int) -> None:
            if os.path.isdir(f"/proc/self/fd/{handle}"):
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            flock(handle, operation)

        monkeypatch.setattr(fcntl, "flock", of_files)

    def test_the_lock_file_counts(self, tmp_path: Path) -> None:
        files, again = PosixFiles(tmp_path), PosixFiles(tmp_path)
        files.lock()
        with pytest.raises(DirectoryInUse):
            again.lock()
        files.unlock()
        again.lock()
        again.unlock()

    @pytest.mark.parametrize("change", [remove_lock, replace_lock, rename_lock])
    def test_its_holder_fails_once_it_is_gone(self, tmp_path: Path, change: Callable[[Path], None]) -> None:
        turns = Turns()
        journal = LocalJournal.open(tmp_path, turns.call_soon)
        append(turns, journal, JournalEntry(b"a"))
        change(tmp_path)
        assert append_fails(turns, journal)
        journal.close()

    def test_a_lock_file_that_is_replaced_before_it_is_locked(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The one that has the name counts, and its holder is the only one."""
        take_file = module.take_file
        replaced: list[bool] = []

        def late(handle: int, named: Path) -> bool:
            if not replaced and (tmp_path / "lock").exists():
                replaced.append(True)
                replace_lock(tmp_path)
            return take_file(handle, named)

        monkeypatch.setattr(module, "take_file", late)
        files = PosixFiles(tmp_path)
        files.lock()
        assert replaced
        with pytest.raises(DirectoryInUse):
            PosixFiles(tmp_path).lock()
        files.unlock()


def test_a_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(handle: int, operation: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(OSError, match="this file system has no locks"):
        PosixFiles(tmp_path).lock()
