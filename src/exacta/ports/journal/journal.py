"""The whole journal, as the engine that writes it sees it."""

from collections.abc import Callable, Iterator
from typing import Protocol

from exacta.ports.journal.entries import JournalEntries
from exacta.ports.journal.reader import JournalReader
from exacta.ports.journal.results import AppendResult
from exacta.ports.journal.snapshots import JournalSnapshots
from exacta.ports.journal.space import JournalSpace


class Journal(JournalReader, JournalSnapshots, JournalSpace, Protocol):
    """Store groups of entries durably and replay them; one process at a time holds a journal that can append."""

    @property
    def may_have_lost(self) -> bool:
        """True if a group may be missing that was written before this opening and was not durable.

        It stays True at every opening until one has appended a group. So the first append must hold whatever the caller
        concludes from this. It is False if nothing was written before it was durable, or none of it can be missing.
        """

    @property
    def is_quick(self) -> bool:
        """True if `write` would make a small group durable now: that takes no longer than the event loop may wait."""

    @property
    def is_exclusive(self) -> bool:
        """True if nobody else can append while this journal is open, so that `confirm` is not needed."""

    def confirm(self, done: Callable[[AppendResult], None]) -> None:
        """Find out whether this journal could still append at some moment after this call.

        `done` gets `GroupAppended` if so, with any position; else `Conflict` or `Failed`, as from an append. An append
        that began after this call may serve as well. Where the journal is exclusive it is never called.
        """

    def replay(self) -> tuple[bytes | None, Iterator[bytes]]:
        """Return the latest sound snapshot (None: there is none) and the events after it, oldest first.

        To be called and exhausted before the first append. The iterator raises JournalDamaged where what is stored is
        not what was written.
        """

    def append(self, expected_position: int, entries: JournalEntries, done: Callable[[AppendResult], None]) -> int:
        """Write the entries as one group and make it durable; return the position at which the group will end.

        `done` gets `GroupAppended` with that position once the group is durable, and `find` sees it from then on. It
        gets `Conflict` when the journal does not end at `expected_position`. It gets `Failed` when nobody knows whether
        the group was made durable, and from then on always. At most one append may be in flight. An append without
        entries makes durable what was written. Raises ValueError for no entries where all is durable, or an index that
        points outside its payload or goes back in a stream; nothing is written then.
        """

    def write(self, expected_position: int, entries: JournalEntries, *, durably: bool = False) -> AppendResult | None:
        """Write the entries as one group at once; `find` sees it when this returns.

        The group is not durable yet, unless `durably` asks for that. Returns `GroupAppended` with the position at its
        end, else what `append` hands to `done`. Returns None where the journal does not take the group so; then
        `append` takes it. A journal may refuse every group. It refuses one that takes longer than the event loop may
        wait, or comes when too much is not durable yet, or before the first append of this opening; and, not `durably`,
        all of them unless it was opened for that. Not to be called while an append is in flight. Raises ValueError as
        `append` does, and for no entries.
        """
