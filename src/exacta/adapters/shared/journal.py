"""The journal of a shared log, as the broker that leads has it.

A group is framed as a local journal's, and appended to the ledger in this broker's epoch. The ledger refuses it once
another broker leads, whatever this one believes. So nothing here depends on a clock, and nothing is durable before the
ledger has answered. A refusal, or an answer that does not come, ends the journal. What was appended then is learned by
following the log again.

A leader draws a new mark for its first group, and whenever a segment is full: a segment is a run of groups with one
mark.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from exacta.adapters.local.format import MARK_BYTES
from exacta.adapters.local.framing import PlacedRows, frame, pack_group
from exacta.adapters.shared.pulse import Pulse, superseded
from exacta.adapters.shared.shared_log import Parts, SharedLog
from exacta.ports.journal import AppendResult, Buffer, Conflict, Failed, GroupAppended, JournalEntries
from exacta.ports.shared import Appended, Superseded, TailGroup

Done = Callable[[AppendResult], None]


class _InFlight(NamedTuple):
    """An append that the ledger has not answered; `confirmed` are those who wait for any."""

    body: Buffer
    previous_checksum: int
    checksum: int
    rows: Sequence[PlacedRows]
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
        self._wants_seal = False
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
        mark = self._next_mark()
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
        self._mark, self._wants_seal = mark, False
        waiting, self._unconfirmed = self._unconfirmed, []
        self._in_flight = _InFlight(body, previous_checksum, checksum, framed.rows, done, waiting)
        catalog = self._parts.catalog.version
        self._ledger.append(TailGroup(position, framed.end, self.epoch, position, catalog, body), self._answered)
        return framed.end

    def _next_mark(self) -> bytes:
        growing = self._tail.growing
        is_full = growing is None or growing.end - growing.base >= self._parts.segment_bytes
        if self._mark is None or is_full or self._wants_seal:
            return self._parts.files.random_bytes(MARK_BYTES)
        return self._mark

    def _answered(self, answer: Appended | Superseded | Failed) -> None:
        in_flight, self._in_flight = self._in_flight, None
        assert in_flight is not None
        result = self._judged(answer)
        if isinstance(answer, Appended):
            self._take_in(in_flight.previous_checksum, in_flight.checksum, in_flight.body, in_flight.rows)
            self._pulse.appended(self.position)
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

    # --- the beginning and the end ------------------------------------------------------------------------------------

    def replay(self) -> tuple[bytes | None, Iterator[bytes]]:
        """See `Journal.replay`: whoever has this journal has followed the log before."""
        raise AssertionError("a journal that a follower hands out is not replayed")

    def close(self) -> None:
        """See `JournalReader.close`: an append in flight is finished first, and nobody is waited for."""
        self._pulse.stop()
        self._is_closing = True
        if self._in_flight is None:
            self._end()

    def _end(self) -> None:
        self._ledger.resign(self.epoch)
        self._parts.release()
