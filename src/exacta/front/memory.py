"""Bounds on the memory of all clients together: for what has come from them, and for what they have not taken yet.

This module owns the two budgets, the line of connections that wait for room, and the choice of the connection that is
given up so that there is room. It owns no socket: each `BudgetedConnection` does its own reading and writing.

Theory of operation. There is one `MemoryBudget` for requests (bytes that have come and are not answered) and one for
answers (bytes that are not with the peer yet). They are apart so that readers who do not read keep nobody from writing.
A budget counts bytes that are there, not bytes that are announced: a size field costs its sender four bytes, and must
cost the broker no more. When a budget is full, back-pressure begins:

- While the requests' budget is full, connections that hold more than `ALLOWANCE_BYTES` are not read. The others go on
  to be read, `SCARCE_READ_BYTES` at a time.
- While the answers' budget is full, answers wait that are longer than the transport holds in any case, and frames of
  which `may_begin` says so. All others go on.

Connections wait in one line, and are woken one at a time, each in a turn of the event loop of its own.

Neither budget can stay full for good. A budget that is full of half-read requests would stay so for ever; therefore the
first connection in the line reads the rest of its request all the same (`lets_on`), one connection at a time, until
that request is answered. Answers that may be long are made only when all earlier ones of their connection have been, so
that they wait for nothing except their reader. As long as a connection waits, a peer that keeps others waiting, because
its request does not come on or because it does not take its answers, is given up after `connections.max.stall.ms`.
Where nobody waits a peer may take its time, up to `connections.max.idle.ms`: a consumer may work for minutes between
two polls.

This bounds the memory. Requests take the budget, one read, the allowance of each connection, and one request of the
largest size. Answers take the budget, one answer, and for each connection the bytes that its transport holds in any
case (`WRITE_HIGH_WATER_BYTES`).
"""

import logging
import time
from collections.abc import Callable
from typing import Protocol

from exacta.config.configuration import Configuration
from exacta.front.conversions import Conversions, OnThread
from exacta.front.threads import on_thread
from exacta.front.turns import Turns
from exacta.ports.scheduler import Scheduler, TimerHandle

logger = logging.getLogger("exacta.front")

ALLOWANCE_BYTES = 16 << 10
"""Bytes of requests that one connection may always hold, even when the budget is used up."""

READ_BYTES = 256 << 10
"""One read takes small requests by the thousand, and few enough that back-pressure does not come late."""

LONG_READ_BYTES = (1 << 20) + (64 << 10)
"""One read takes so much after a request longer than `READ_BYTES`, where there is room: another is likely to follow. It
holds the largest batch (`message.max.bytes`), and what a request has around it."""

SCARCE_READ_BYTES = 4 << 10

LEAST_PROGRESS_BYTES = 64 << 10
"""A peer that owes bytes must move this many within `connections.max.stall.ms` while others wait."""

LEAST_ANSWER_BYTES = 1 << 20
"""An answer gets room for no less: most batches are shorter, and one batch is answered in any case (KIP-74)."""

SHARE = 4
"""An answer gets at most this part of the room, so that few large answers do not keep many others waiting."""

WRITE_HIGH_WATER_BYTES = 64 << 10
"""The transport may hold so much of answers before they count, and their client is read no more."""


class BudgetedConnection(Protocol):
    """A connection, as a budget sees it."""

    def room_again(self) -> None:
        """Go on, if there is room: it is this connection's turn."""

    def moved_bytes(self, budget: "MemoryBudget") -> int | None:
        """Return how many bytes the peer has moved in all; None: the peer does not hold them up."""

    def is_half_read(self) -> bool:
        """Return whether a request has come in part."""

    def give_up(self, budget: "MemoryBudget") -> None:
        """End: others wait for the room that this connection holds, and its peer does nothing."""


class MemoryBudget:
    """One budget. `used_bytes` and `line` are public for the path of every request; all other callers use `give`."""

    def __init__(self, option: str, most_bytes: int, stall_ms: int, scheduler: Scheduler) -> None:
        self.option = option
        self.most_bytes = most_bytes
        self.stall_ms = stall_ms
        self.used_bytes = 0
        self.let_on: BudgetedConnection | None = None
        """The connection that goes on although there is no room."""
        self.filled = 0
        """The number of times that connections began to wait for room."""
        self._scheduler = scheduler
        self.line: dict[BudgetedConnection, None] = {}
        """The connections that wait for room, in their order."""
        self._watched: dict[BudgetedConnection, int | None] = {}
        self._waking = False
        self._timer: TimerHandle | None = None

    def is_full(self) -> bool:
        """Return whether only the connection that is let on gets more."""
        return self.used_bytes >= self.most_bytes

    def share(self) -> int:
        """Return how long one answer may be now."""
        return max((self.most_bytes - self.used_bytes) // SHARE, LEAST_ANSWER_BYTES)

    def give(self, size: int) -> None:
        """Count this many bytes less."""
        self.used_bytes -= size
        if self.line:
            self.wake()

    def wake(self) -> None:
        """Call the connections that wait, one in each turn of the event loop, while there is room."""
        if not self._waking and not self.is_full():
            self._waking = True
            self._scheduler.call_soon(self._wake_first)

    # --- the line -----------------------------------------------------------------------------------------------------

    def wait(self, holder: BudgetedConnection) -> None:
        """Put a connection at the end of the line, unless it is there; `room_again` is called when its turn comes."""
        if not self.line:
            self.filled += 1
        self.line[holder] = None
        if self._timer is None:
            self._timer = self._scheduler.call_later(self.stall_ms / 1000, self._look)
            logger.warning(
                "clients' bytes have reached a bound, and connections wait for room: %(option)s=%(most_bytes)d",
                {"option": self.option, "most_bytes": self.most_bytes},
            )

    def lets_on(self, holder: BudgetedConnection) -> bool:
        """Say whether a connection may go on beyond the bound: one may, until it calls `pass_on`, or leaves."""
        if self.let_on is None:
            self.let_on = holder
        return self.let_on is holder

    def pass_on(self) -> None:
        """Let the next in the line go on that has begun a request: the one before holds no more than others."""
        self.let_on = next((holder for holder in self.line if holder.is_half_read()), None)
        if self.let_on is not None:
            del self.line[self.let_on]
            self._scheduler.call_soon(self.let_on.room_again)

    def leave(self, holder: BudgetedConnection) -> None:
        """Forget a connection. The bytes that it holds must be given besides."""
        self.line.pop(holder, None)
        self._watched.pop(holder, None)
        if self.let_on is holder:
            self.pass_on()

    def _wake_first(self) -> None:
        self._waking = False
        if not self.line or self.is_full():
            return
        first = next(iter(self.line))
        del self.line[first]
        first.room_again()
        if self.line:
            self.wake()

    # --- peers that keep others waiting -------------------------------------------------------------------------------

    def watch(self, holder: BudgetedConnection) -> None:
        """Expect the connection's peer to move bytes from now on."""
        self._watched[holder] = None

    def unwatch(self, holder: BudgetedConnection) -> None:
        """Expect nothing of the connection's peer any more."""
        self._watched.pop(holder, None)

    def _look(self) -> None:
        """Give up the connections whose peers have not moved enough since the last look."""
        self._timer = None
        if not self.line:
            return
        self._timer = self._scheduler.call_later(self.stall_ms / 1000, self._look)
        for holder, before in list(self._watched.items()):
            moved = holder.moved_bytes(self)
            if moved is None or before is None or moved - before >= LEAST_PROGRESS_BYTES:
                self._watched[holder] = moved
            else:
                holder.give_up(self)


class Memory:
    """Both budgets of one broker, its turns and conversions, and the buffer that its connections read into."""

    def __init__(
        self,
        configuration: Configuration,
        scheduler: Scheduler,
        on_thread: OnThread = on_thread,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`on_thread` does long work; the turns are measured by `clock`, in seconds."""

        def budget(option: str, most_bytes: int) -> MemoryBudget:
            return MemoryBudget(option, most_bytes, configuration.connections_max_stall_ms, scheduler)

        self.conversions = Conversions(on_thread)
        self.turns = Turns(scheduler, self.conversions, clock)
        self.requests = budget("queued.max.request.bytes", configuration.queued_max_request_bytes)
        self.answers = budget("queued.max.response.bytes", configuration.queued_max_response_bytes)
        self.long_buffer = memoryview(bytearray(LONG_READ_BYTES))
        self.buffer = self.long_buffer[:READ_BYTES]
        self.scarce_buffer = self.buffer[:SCARCE_READ_BYTES]
