"""The note of how far the journal was written: the table of `unsynced_end.py`, and notes that cannot be read."""

import pytest

from exacta.adapters.local.opening import unsynced_end
from tests.docstring_tables import docstring_table

TABLE = docstring_table("exacta.adapters.local.opening.unsynced_end", "the note says")
RUN, OTHER_RUN, NO_NAME = b"r" * 36, b"o" * 36, b""
NOTES = {
    # the name of a row: the run that is noted, the present run, and whether all is synced
    "all is synced": (OTHER_RUN, RUN, True),
    "written, in the machine's present run": (RUN, RUN, False),
    "written, in another run": (OTHER_RUN, RUN, False),
    "written, in a run that has no name": (NO_NAME, NO_NAME, False),
}
MAY_HAVE_LOST = {"nothing is missing": False, "a write may be missing": True}
NOTED = 100


def test_the_table_is_complete() -> None:
    assert TABLE.rows.keys() == NOTES.keys()


@pytest.mark.parametrize(("row", "column", "cell"), TABLE.cells())
def test_every_cell(row: str, column: str, cell: str) -> None:
    noted, present, synced = NOTES[row]
    note = unsynced_end._pack(noted, NOTED, synced=synced)
    ends = (NOTED - 1, 0) if column == "it ends before" else (NOTED, NOTED + 1)
    assert {unsynced_end._may_have_lost(note, end, present) for end in ends} == {MAY_HAVE_LOST[cell]}


@pytest.mark.parametrize("note", [None, b"", b"x" * unsynced_end._SIZE])
def test_a_note_that_cannot_be_read(note: bytes | None) -> None:
    assert [unsynced_end._may_have_lost(note, end, RUN) for end in (0, 1)] == [False, True]
