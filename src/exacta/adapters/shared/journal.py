"""The journal of a shared log, as the broker that leads has it.

A group is framed as a local journal's, and appended to the ledger in this broker's epoch. The ledger refuses it once
another broker leads, whatever this one believes. So nothing here depends on a clock, and nothing is durable before the
ledger has answered. A refusal, or an answer that does not come, ends the journal. What was appended then is learned by
following the log again.

A leader draws a new mark for its first group, and whenever a segment is full: a segment is a run of groups with one
mark.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from exacta.adapters.local.format import MARK_BYTES
from exacta.adapters.local.framing import PlacedRows, frame, pack_group
from exacta.adapters.shared.pulse import Pulse, superseded
from exacta.adapters.shared.shared_log import Parts, SharedLog
from exacta.adapters.shared.space import SharedSpace
from exacta.ports.compaction import Compact
from exacta.ports.journal import (
    AppendResult,
    Buffer,
    Cleaned,
    CompactionOrder,
    Conflict,
    Failed,
    Fold,
    GroupAppended,
    JournalEntries,
    Room,
)
from exacta.ports.shared import Appended, Superseded, TailGroup

Done = Callable[[AppendResult], None]


class _InFlight(NamedTuple):
    """An append that the ledger has not answered; `confirmed` are those who wait for any."""

    body: Buffer
    previous_checksum: int
    checksum: int
    rows: Sequence[PlacedRows]
    events: int
    begins_segment: bool
    done: Done
    confirmed: Sequence[Done]


class SharedJournal(SharedLog):
    """Implement `exacta.ports.following.LedJournal`; made by a follower that has taken the lead."""

    is_exclusive = False
    is_quick = False
    may_have_lost = False

    def __init__(self, parts: Parts, position: int, checksum: int | None, epoch: int, pulse: Pulse) -> None:
        super().__init__(parts, position, checksum)
        self.epoch = epoch
        self._pulse = pulse
        pulse.lost = self._fail
        self._mark: bytes | None = None
        self._space = SharedSpace(
            parts.files,
            parts.catalog,
            parts.reader,
            parts.tail,
            parts.ledger,
            epoch=epoch,
            new_job_runner=parts.new_job_runner,
            new_worker=parts.new_worker,
            post=parts.post,
            call_later=parts.scheduler.call_later,
            on_lost=self._fail,
            on_damage=lambda damage: self._fail(Failed(str(damage))),
            segment_bytes=parts.limits.segment_bytes,
            snapshot_events=parts.limits.snapshot_events,
            tail_bytes=parts.limits.tail_bytes,
        )
        self._space.begin()
        self._in_flight: _InFlight | None = None
        self._unconfirmed: list[Done] = []
        self._is_confirming = False
        self._is_closing = False

    # --- appending ----------------------------------------------------------------------------------------------------

    def append(self, expected_position: int, entries: JournalEntries, done: Done) -> int:
        """See `Journal.append`."""
        position = self.position
        if self._failure is not None:
            self._call_soon(done, self._failure)
            return position
        if expected_position != position:
            self._call_soon(done, Conflict(position))
            return position
        assert self._in_flight is None, "one append at a time"
        if not entries:
            raise ValueError("an append needs entries: all is durable")
        framed = frame(entries, position, self._index.last_offset)
        begins_segment = self._mark is None or self._tail.growing is None or self._space.wants_seal
        mark = self._parts.files.random_bytes(MARK_BYTES) if begins_segment or self._mark is None else self._mark
        previous_checksum = self._checksum or 0
        buffers, _, checksum = pack_group(
            mark,
            previous_checksum,
            position,
            framed.table,
            framed.payload,
            framed.entry_count,
            position,
            unsynced=False,
        )
        body = b"".join(buffers)
        self._mark = mark
        waiting, self._unconfirmed = self._unconfirmed, []
        self._in_flight = _InFlight(
            body, previous_checksum, checksum, framed.rows, len(entries), begins_segment, done, waiting
        )
        catalog = self._parts.catalog.version
        self._ledger.append(TailGroup(position, framed.end, self.epoch, position, catalog, body), self._answered)
        return framed.end

    def _answered(self, answer: Appended | Superseded | Failed) -> None:
        in_flight, self._in_flight = self._in_flight, None
        assert in_flight is not None
        result = self._judged(answer)
        if isinstance(answer, Appended):
            self._take_in(in_flight.previous_checksum, in_flight.checksum, in_flight.body, in_flight.rows)
            self._pulse.appended(self.position)
            self._space.appended(in_flight.events, began_segment=in_flight.begins_segment)
            result = GroupAppended(self.position)
        if self._is_closing:
            self._end()
        in_flight.done(result)
        for confirmed in in_flight.confirmed:
            confirmed(result)

    def _judged(self, answer: Appended | Superseded | Failed) -> AppendResult:
        """Return what the caller is told; a journal that has failed once, or was superseded, goes no further."""
        if self._failure is not None:
            return self._failure
        if isinstance(answer, Appended):
            return GroupAppended(self.position)
        self._failure = superseded(answer) if isinstance(answer, Superseded) else answer
        self._pulse.stop()
        return Conflict(self.position) if isinstance(answer, Superseded) else answer

    def write(self, expected_position: int, entries: JournalEntries, *, durably: bool = False) -> AppendResult | None:
        """See `Journal.write`: what is not durable is nowhere, so that there is nothing to write ahead."""
        if self._failure is not None:
            return self._failure
        if expected_position != self.position:
            return Conflict(self.position)
        assert self._in_flight is None, "no write while an append is in flight"
        if not entries:
            raise ValueError("a write needs entries")
        return None

    # --- confirming ---------------------------------------------------------------------------------------------------

    def confirm(self, done: Done) -> None:
        """See `Journal.confirm`; an append of the same turn serves, or one commit for all who have asked by then."""
        if self._failure is not None:
            self._call_soon(done, self._failure)
            return
        self._unconfirmed.append(done)
        if not self._is_confirming:
            self._is_confirming = True
            self._call_soon(self._confirm)

    def _confirm(self) -> None:
        waiting, self._unconfirmed = self._unconfirmed, []
        if not waiting or self._is_closing:
            self._is_confirming = False
            return

        def answered(answer: Appended | Superseded | Failed) -> None:
            result = self._judged(answer)
            for done in waiting:
                done(result)
            self._confirm()

        self._ledger.confirm(self.epoch, answered)

    # --- snapshots and space -----------------------------------------------------------------------------------------

    @property
    def wants_snapshot(self) -> bool:
        """See `JournalSnapshots.wants_snapshot`."""
        return self._space.wants_snapshot

    def save_snapshot(self, blob: bytes, position: int, done: Callable[[Failed | None], None] | None = None) -> None:
        """See `JournalSnapshots.save_snapshot`."""
        if position != self.position or self._in_flight is not None or self._failure is not None:
            raise ValueError(f"position {position} is not a position of a durable journal")
        self._space.save_snapshot(blob, position, done)

    def fold_snapshot(self, fold: Fold, done: Callable[[Failed | None], None]) -> None:
        """See `JournalSnapshots.fold_snapshot`."""
        self._space.fold_snapshot(fold, self.position, done)

    def clean(self, floors: Mapping[int, int], done: Callable[[Cleaned | Failed], None]) -> None:
        """See `JournalSpace.clean`."""
        self._space.clean(floors, done)

    @property
    def room(self) -> Room | None:
        """See `JournalSpace.room`."""
        return self._space.room

    @property
    def watches_room(self) -> bool:
        """See `JournalSpace.watches_room`."""
        return self._space.watches_room

    def measure_room(self, done: Callable[[], None]) -> None:
        """See `JournalSpace.measure_room`."""
        self._space.measure_room(done)

    def seal(self) -> None:
        """See `JournalSpace.seal`."""
        self._space.seal()

    def sealed_to(self, stream: int) -> int:
        """See `JournalSpace.sealed_to`."""
        return self._space.sealed_to(stream)

    def compactable(self, stream: int, end_offset: int) -> tuple[int, int]:
        """See `JournalSpace.compactable`."""
        return self._space.compactable(stream, end_offset)

    def compact(
        self,
        orders: Sequence[CompactionOrder],
        floors: Mapping[int, int],
        rewriter: Compact,
        done: Callable[[Failed | None], None],
    ) -> None:
        """See `JournalSpace.compact`."""
        self._space.compact(orders, floors, rewriter, done)

    # --- the beginning and the end ------------------------------------------------------------------------------------

    def replay(self) -> tuple[bytes | None, Iterator[bytes]]:
        """See `Journal.replay`: it is not to be called, since the log was followed before."""
        raise AssertionError("a journal that a follower hands out is not replayed")

    def close(self) -> None:
        """See `JournalReader.close`: an append in flight is finished first, and nobody is waited for."""
        self._pulse.stop()
        self._parts.files.store.close()  # first: what workers ask of it would hold up their ends
        self._space.close()
        self._is_closing = True
        if self._in_flight is None:
            self._end()

    def _end(self) -> None:
        self._ledger.resign(self.epoch)
        self._parts.release()
