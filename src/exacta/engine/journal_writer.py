"""Group commit: hands groups of events to the journal, one after another, and releases the answers that wait for them.

Owns the group that gathers, the group that is in flight, and the order in which answers are released. Owns neither for
what an answer waits (`answers_ahead`) nor what is in a group (`commit_group`).

Theory of operation. A group is sealed at the end of the loop's turn in which something first waited for it, and only if
nothing is in flight; meanwhile others join it. If answers wait only until it is written, the loop writes it itself
(decision 0016). If exactly one answer waits, and the disk is quick, the loop also syncs it (decision 0023). Otherwise
the journal appends it aside. What readers see of it is taken down when it is sealed, and shown when it is durable.
"""

from collections.abc import Callable, Sequence

from exacta.core.events import Event
from exacta.core.ids import PartitionId
from exacta.core.state.state import State
from exacta.engine.answers_ahead import AnswersAhead
from exacta.engine.commit_group import CommitGroup, Release, Wait, call_all
from exacta.engine.visible import Changes, visible_changes
from exacta.ports.journal import Appended, AppendResult, Failed, Journal
from exacta.ports.record_format import Buffer, RecordFormat
from exacta.ports.scheduler import Scheduler


class JournalWriter:
    """Writes what the engine decides. The engine's."""

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
        fail: Callable[[str], None],
    ) -> None:
        """`clock` is the engine's, `marker_clock` gives the timestamps of markers; both in milliseconds since 1970.

        `show` gets what readers may see once that is durable, `advance` the same partitions once the answers are
        released. `fail` is called where a group was not taken; the caller then stops the writer.
        """
        self._state = state
        self._journal = journal
        self._records = records
        self._scheduler = scheduler
        self._marker_clock = marker_clock
        self._show = show
        self._advance = advance
        self._fail = fail
        self.gathering = CommitGroup(1)
        self.in_flight: CommitGroup | None = None
        self.ahead = AnswersAhead(state, scheduler, clock, self.hurry)
        self._changes: Changes = []
        self._flush_scheduled = False
        self._closing: Callable[[], None] | None = None
        self._has_stopped = False

    # --- what the engine asks -----------------------------------------------------------------------------------------

    def add(self, event: Event, payload: Buffer | None, wait: Wait) -> None:
        """Let an event be written that is applied, and that an answer may wait for."""
        self.gathering.add(event, payload, self._records, self._marker_clock)
        if wait is Wait.SYNC:
            self.want(wait)

    def want(self, wait: Wait) -> None:
        """Let what gathers be written, or be made durable with all that is written, as soon as can be."""
        if wait > self.gathering.waited_for:
            self.gathering.waited_for = wait
            self._schedule_flush()

    def hurry(self) -> None:
        """Make durable what has gathered, and what is written, as soon as can be."""
        self.want(Wait.SYNC)

    def release(self, release: Release) -> None:
        """Call back once the present state is durable, ignoring events that no pending answer depends on."""
        if self.gathering.waited_for is Wait.SYNC:
            self.gathering.releases.append(release)
        elif self.ahead.unsynced is not None or self.gathering.waited_for is Wait.WRITE:
            self.gathering.releases.append(release)
            self.hurry()
        elif self.in_flight is not None:
            self.in_flight.releases.append(release)
        else:
            release()

    def release_when_written(self, release: Release) -> None:
        """Call back once what has gathered is written, which somebody must want."""
        self.gathering.written_releases.append(release)

    def touched_ahead(self) -> set[PartitionId]:
        """Return the partitions whose acknowledged writes readers may not see yet, since they are only written."""
        if self.ahead.unsynced is not None:
            return self.ahead.unsynced
        return self.in_flight.synced_too if self.in_flight is not None else set()

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
        if group.waited_for is Wait.WRITE and self._closing is None and self._write_unsynced(group):
            return
        if not group.entries and self.ahead.unsynced is None:
            self._finish_closing()
            return
        self.gathering = CommitGroup(group.number + 1)
        self.in_flight = group
        self.ahead.syncs(group)
        self._changes = visible_changes(self._state, group.touched)
        try:
            result = self._append(group)
        except Exception as defect:
            self._fail(f"append: {defect!r}")
            raise
        if result is not None:
            self._appended(result)

    def _append(self, group: CommitGroup) -> AppendResult | None:
        """Give the group to the journal, which calls back, unless it can say at once what became of it."""
        position = self._journal.position
        if group.has_one_waiter and (result := self._journal.write(position, group.entries, durably=True)) is not None:
            return result
        self._journal.append(position, group.entries, self._appended)
        return None

    def _write_unsynced(self, group: CommitGroup) -> bool:
        """Write the group ahead of its sync, and release the answers that wait only for that.

        Returns False where the journal wants an append instead.
        """
        try:
            result = self._journal.write(self._journal.position, group.entries)
        except Exception as defect:
            self._fail(f"write: {defect!r}")
            raise
        if result is None:
            return False
        if not self._was_taken(result):
            return True
        self.gathering = CommitGroup(group.number + 1)
        self.ahead.written(group)
        try:
            call_all(group.written_releases)
        finally:
            self.ahead.sync_begins(group)
        return True

    def _was_taken(self, result: AppendResult) -> bool:
        if isinstance(result, Appended):
            return True
        reason = result.reason if isinstance(result, Failed) else f"it ends at {result.position}"
        self._fail(f"the journal did not take a group: {reason}")
        return False

    def _appended(self, result: AppendResult) -> None:
        group = self.in_flight
        assert group is not None
        if not self._was_taken(result) or self._has_stopped:
            return
        self.in_flight = None
        changes = self._changes
        self._show(changes)
        will_wait = self.gathering.has_one_waiter and self._journal.is_quick
        if (self.gathering.waited_for is Wait.SYNC or self._closing is not None) and not will_wait:
            self._flush()  # before the answers: the disk works meanwhile
        try:
            call_all(group.written_releases + group.releases)
        finally:
            self._advance([partition_id for partition_id, _ in changes])
            if self.gathering.waited_for is not Wait.NOTHING or self._closing is not None:
                self._schedule_flush()  # after them: their connections send before the loop waits for the disk

    def _finish_closing(self) -> None:
        if self._closing is not None:
            done, self._closing = self._closing, None
            done()
