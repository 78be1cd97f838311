"""A journal in a real directory: it is one journal's alone, and everything is given back when it is closed."""

import threading
from pathlib import Path

import pytest

from exacta.adapters.local import DirectoryInUse, LocalJournal
from exacta.ports.journal import JournalEntry, JournalError
from tests.adapters.turns import Turns, append, batch, read

SEGMENT_BYTES = 1000
GROUP_COUNT = 12


def test_second_opening_is_refused_and_leaves_the_first_alone(tmp_path: Path):
    turns = Turns()
    directory = tmp_path / "made" / "on demand"
    journal = LocalJournal.open(directory, turns.call_soon)
    with pytest.raises(DirectoryInUse, match="is in use by another"):
        LocalJournal.open(directory, turns.call_soon)
    append(turns, journal, JournalEntry(b"a"))
    journal.close()
    journal = LocalJournal.open(directory, turns.call_soon)
    assert list(journal.replay()[1]) == [b"a"]
    journal.close()


def test_directory_that_cannot_be_made_is_a_journal_error(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(JournalError, match="file"):
        LocalJournal.open(tmp_path / "file", Turns().call_soon)


def open_files(directory: Path) -> list[str]:
    links = Path("/proc/self/fd")
    return [str(path) for link in links.iterdir() if directory in (path := link.resolve()).parents]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's list of open files")
def test_handles_threads_and_lock_are_given_back(tmp_path: Path):
    threads = threading.active_count()
    for number in range(3):
        turns = Turns()
        journal = LocalJournal.open(tmp_path, turns.call_soon, segment_bytes=SEGMENT_BYTES)
        for part in range(GROUP_COUNT):
            append(turns, journal, batch(1, number * GROUP_COUNT + part, b"x" * 200))
        read(turns, journal, journal.find(1, 0, 1 << 60, 1 << 60))
        assert open_files(tmp_path)
        journal.close()
        assert open_files(tmp_path) == []
        assert threading.active_count() == threads
