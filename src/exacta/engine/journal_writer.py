"""Group commit: hands groups of events to the journal, one after another, and releases the answers that wait for them.

Owns the group that gathers, the group that is in flight, and the order in which answers are released. Owns neither what
an answer waits for (`answers_ahead`) nor what is in a group (`commit_group`).

Theory of operation. A group is sealed at the end of the loop's turn in which something first waited for it, and only if
nothing is in flight; meanwhile others join it. If answers wait only until it is written, the loop writes it itself
(decision 0016). If exactly one answer waits, and the disk is quick, the loop also syncs it (decision 0023). Otherwise
the journal's thread writes and syncs it. What readers see of it is taken down when it is sealed, and shown when it is
durable. What is only written is synced at once where a reader of uncommitted messages waits for it.
"""

from collections.abc import Callable, Sequence, Set

from exacta.core.ids import PartitionId
from exacta.core.state.state import State
from exacta.engine.answers_ahead import AnswersAhead
from exacta.engine.commit_group import NOTHING, SYNC, WRITE, CommitGroup, Release, Wait, call_all
from exacta.engine.visible import Changes, visible_changes
from exacta.ports.journal import AppendResult, Failed, GroupAppended, Journal
from exacta.ports.log import Counts
from exacta.ports.record_format import RecordFormat
from exacta.ports.scheduler import Scheduler


class JournalWriter:
    """Writes what the engine decides, and releases the answers."""

    def __init__(
        self,
        state: State,
        journal: Journal,
        records: RecordFormat,
        *,
        scheduler: Scheduler,
        clock: Callable[[], int],
        marker_clock: Callable[[], int],
        show: Callable[[Changes], None],
        advance: Callable[[Sequence[PartitionId]], None],
        is_awaited: Callable[[Set[PartitionId]], bool],
        fail: Callable[[str, bool], None],
        counts: Counts,
    ) -> None:
        """Begin with a state that is durable, and nothing to write.

        `clock` is the engine's, `marker_clock` gives the timestamps of markers; both in milliseconds since 1970.

        `show` gets what readers may see once that is durable, `advance` the same partitions once the answers are
        released. `is_awaited` says whether anybody waits to be shown what was written to these partitions, and is not
        synced. `fail` is called where a group was not taken, and told whether the journal said so, or it is a defect of
        ours; the caller then stops the writer.
        """
        self._state = state
        self._journal = journal
        self._scheduler = scheduler
        self._show = show
        self._advance = advance
        self._is_awaited = is_awaited
        self._fail = fail
        self._counts = counts
        self.gathering = CommitGroup(1, records, marker_clock)
        self.in_flight: CommitGroup | None = None
        self.durable_number = 0
        """The number of the last group that is durable; what was written before it is durable, too."""
        self._is_shared = not journal.is_exclusive
        self.ahead = AnswersAhead(state, scheduler, clock, self.hurry, is_exclusive=journal.is_exclusive)
        self._changes: Changes = []
        self._flush_scheduled = False
        self._closing: Callable[[], None] | None = None
        self._has_stopped = False

    # --- what the engine asks -----------------------------------------------------------------------------------------

    def want(self, wait: Wait) -> None:
        """Let what gathers be written, or be made durable with all that is written, as soon as can be."""
        if wait > self.gathering.waited_for:
            self.gathering.waited_for = wait
            self._schedule_flush()

    def hurry(self) -> None:
        """Make durable what has gathered, and what is written, as soon as can be."""
        self.want(SYNC)

    def release(self, release: Release, wait: Wait = SYNC) -> int:
        """Call back once the present state is durable, ignoring events that no pending answer depends on.

        For less to `wait` for: call back once the group that gathers is written (see `want`), or now. Where others may
        append to the journal, nobody had done so when this was called: it waits for a group that begins later, and a
        group without entries is confirmed. Returns the number of the group that this waits for; 0 if it was called
        back at once.
        """
        gathering = self.gathering
        if wait is WRITE:
            gathering.written_releases.append(release)
            return gathering.number
        if wait is NOTHING:
            release()
            return 0
        if gathering.waited_for is SYNC:
            group = gathering
        elif self.ahead.unsynced is not None or gathering.waited_for is WRITE or self._is_shared:
            group = gathering
            self.hurry()
        elif self.in_flight is not None:
            group = self.in_flight
        else:
            release()
            return 0
        group.releases.append(release)
        return group.number

    def touched_ahead(self) -> Set[PartitionId]:
        """Return the partitions whose acknowledged writes readers may not see yet, since they are only written."""
        if self.ahead.unsynced is not None:
            return self.ahead.unsynced
        return self.in_flight.synced_too if self.in_flight is not None else frozenset()

    def close(self, done: Callable[[], None]) -> None:
        """Make durable what has gathered, and what is written; then call `done`, once."""
        self.ahead.stop()
        self._closing = done
        if self.in_flight is None:
            self._flush()

    def stop(self) -> None:
        """Write nothing any more, and release no answer: the engine has failed."""
        self._has_stopped = True
        self.ahead.stop()

    # --- groups -------------------------------------------------------------------------------------------------------

    def _schedule_flush(self) -> None:
        if self.in_flight is None and not self._flush_scheduled:
            self._flush_scheduled = True
            self._scheduler.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_scheduled = False
        if self.in_flight is not None or self._has_stopped:
            return
        group = self.gathering
        if group.waited_for is WRITE and self._closing is None and self._write_unsynced(group):
            return
        if not group.entries and self.ahead.unsynced is None and not (self._is_shared and group.releases):
            self._finish_closing()
            return
        self.gathering = group.next()
        self.in_flight = group
        self.ahead.syncs(group)
        self._changes = visible_changes(self._state, group.touched)
        try:
            result = self._append(group)
        except Exception as defect:
            self._fail(f"append: {defect!r}", False)
            raise
        if result is not None:
            self._appended(result)

    def _append(self, group: CommitGroup) -> AppendResult | None:
        """Give the group to the journal; return the result if it is known at once, else the journal calls back."""
        if group.entries:
            self._counts.groups.add_whole(len(group.entries))
        elif self._is_shared:
            self._journal.confirm(self._appended)
            return None
        position = self._journal.position
        if group.has_one_waiter and (result := self._journal.write(position, group.entries, durably=True)) is not None:
            return result
        self._journal.append(position, group.entries, self._appended)
        return None

    def _write_unsynced(self, group: CommitGroup) -> bool:
        """Write the group ahead of its sync, and release the answers that wait only until it is written.

        Returns False where the journal wants an append instead.
        """
        try:
            result = self._journal.write(self._journal.position, group.entries)
        except Exception as defect:
            self._fail(f"write: {defect!r}", False)
            raise
        if result is None:
            return False
        if not self._was_taken(result):
            return True
        self._counts.groups.add_whole(len(group.entries))
        self.gathering = group.next()
        self.ahead.written(group)
        try:
            call_all(group.written_releases)
        finally:
            self.ahead.sync_begins(group)
            if group.touched and self._is_awaited(group.touched):
                self.hurry()
        return True

    def _was_taken(self, result: AppendResult) -> bool:
        if isinstance(result, GroupAppended):
            return True
        reason = result.reason if isinstance(result, Failed) else f"it ends at {result.position}"
        self._fail(f"the journal did not take a group: {reason}", True)
        return False

    def _appended(self, result: AppendResult) -> None:
        group = self.in_flight
        assert group is not None
        if not self._was_taken(result) or self._has_stopped:
            return
        self.in_flight = None
        self.durable_number = group.number
        changes = self._changes
        self._show(changes)
        will_wait = self.gathering.has_one_waiter and self._journal.is_quick
        if (self.gathering.waited_for is SYNC or self._closing is not None) and not will_wait:
            self._flush()  # before the answers: the disk works meanwhile
        try:
            call_all(group.written_releases + group.releases)
        finally:
            self._advance([partition_id for partition_id, _ in changes])
            if self.gathering.waited_for is not NOTHING or self._closing is not None:
                self._schedule_flush()  # after them: their connections send before the loop waits for the disk

    def _finish_closing(self) -> None:
        if self._closing is not None:
            done, self._closing = self._closing, None
            done()
