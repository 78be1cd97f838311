"""How much memory clients may take up together: what has come from them, and what they have not taken yet.

Owns the two accounts, who waits for room in them, and whom to give up so that there is room. Owns no socket: each
`Holder` is a connection, and does its own reading and writing.

Theory of operation. There is one `Budget` for requests (bytes that have come and are not answered) and one for answers
(bytes that are not with the peer yet); they are apart so that readers who do not read keep nobody from writing. A
budget counts bytes that are there, not bytes that are announced: a size field costs its sender four bytes, and must
cost us no more. When one is full, back-pressure begins:

| what is full | who waits | who goes on |
|---|---|---|
| requests | who holds more than `ALLOWANCE_BYTES` is read no more | everybody else, in reads of `SCARCE_READ_BYTES` |
| answers | fetches that found more than the transport holds in any case, requests of `LONG_ANSWERS` | all others |

Whoever waits does so in one line, and is woken one at a time, in turns of the event loop of their own.

Neither can stop for good. Requests: a budget that is full of half-read requests would be so for ever; so the first in
the line reads the rest of its request all the same (`lets_on`), one connection at a time, till that is answered.
Answers: those that may be long are made only when all earlier ones of their connection have been, so that they wait for
nothing but their reader. And as long as somebody waits, a peer that keeps others waiting, whose request does not come
on or that does not take its answers, is given up after `connections.max.stall.ms`. Where nobody waits it may take its
time, up to `connections.max.idle.ms`: a consumer may work for minutes between two polls.

Hence the bounds. Requests: the budget, one read, what each connection is allowed in any case, and one request
(`socket.request.max.bytes`). Answers: the budget, one answer, and for each connection what its transport holds in any
case (`WRITE_HIGH_WATER_BYTES`).
"""

from typing import Protocol

from exacta.config.configuration import Configuration
from exacta.kafka.keys import ApiKey
from exacta.ports.scheduler import Scheduler, TimerHandle

ALLOWANCE_BYTES = 16 << 10
"""Of requests, for each connection, whatever others hold: heartbeats, commits and small batches always pass."""

READ_BYTES = 256 << 10
"""Small requests by the thousand, and not so many that back-pressure comes late."""

LONG_READ_BYTES = (1 << 20) + (64 << 10)
"""After a request longer than that, where there is room: another is likely to follow. The largest batch
(`message.max.bytes`), and around it what else a request has."""

SCARCE_READ_BYTES = 4 << 10

LEAST_PROGRESS_BYTES = 64 << 10
"""What must move within `connections.max.stall.ms` while others wait: some kilobytes a second, where bytes are owed."""

LEAST_ANSWER_BYTES = 1 << 20
"""A fetch is let on with no less: as long as most batches may be, of which one is answered in any case (KIP-74)."""

SHARE = 4
"""A fetch gets at most this part of what is left, so that few large answers do not keep many others waiting."""

LONG_ANSWERS = frozenset(
    {
        ApiKey.METADATA,
        ApiKey.OFFSET_FETCH,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.LIST_GROUPS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_TRANSACTIONS,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.LIST_CONFIG_RESOURCES,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.DESCRIBE_LAG,
        ApiKey.EXPLAIN_TRANSACTIONS,
    }
)
"""APIs whose answers may be much longer than the requests; Fetch asks for room itself, when it knows how much."""


class Holder(Protocol):
    """A connection, as a budget sees it."""

    def room_again(self) -> None:
        """It is this one's turn, if there is room."""

    def moved_bytes(self, budget: "Budget") -> int | None:
        """Return how many bytes its peer has moved in all; None: it is not the peer that keeps them."""

    def is_half_read(self) -> bool:
        """Return whether it could go on with the request that it has begun."""

    def give_up(self, budget: "Budget") -> None:
        """End: others wait for what this one holds, and its peer does nothing."""


class Budget:
    """One account. `used_bytes` and `line` are public for the path of every request; `give` is for the others."""

    def __init__(self, option: str, most_bytes: int, stall_ms: int, scheduler: Scheduler) -> None:
        self.option = option
        self.most_bytes = most_bytes
        self.stall_ms = stall_ms
        self.used_bytes = 0
        self.let_on: Holder | None = None
        """Who goes on though there is no room."""
        self._scheduler = scheduler
        self.line: dict[Holder, None] = {}
        """Who waits for room."""
        self._watched: dict[Holder, int | None] = {}
        self._waking = False
        self._timer: TimerHandle | None = None

    def is_full(self) -> bool:
        """Return whether nobody gets more, but who is let on."""
        return self.used_bytes >= self.most_bytes

    def share(self) -> int:
        """Return how long one answer may be now."""
        return max((self.most_bytes - self.used_bytes) // SHARE, LEAST_ANSWER_BYTES)

    def give(self, size: int) -> None:
        """Count so many bytes less."""
        self.used_bytes -= size
        if self.line:
            self.wake()

    def wake(self) -> None:
        """Call those who wait, one in each turn of the event loop, while there is room."""
        if not self._waking and not self.is_full():
            self._waking = True
            self._scheduler.call_soon(self._wake_first)

    # --- the line -----------------------------------------------------------------------------------------------------

    def wait(self, holder: Holder) -> None:
        """Put it at the end of the line, unless it stands there; `room_again` is called when its turn has come."""
        self.line[holder] = None
        if self._timer is None:
            self._timer = self._scheduler.call_later(self.stall_ms / 1000, self._look)

    def lets_on(self, holder: Holder) -> bool:
        """Say whether this one may go on beyond the bound: one may, until it says `pass_on`, or leaves."""
        if self.let_on is None:
            self.let_on = holder
        return self.let_on is holder

    def pass_on(self) -> None:
        """The one that was let on holds no more than others: the next in the line that has begun a request is."""
        self.let_on = next((holder for holder in self.line if holder.is_half_read()), None)
        if self.let_on is not None:
            del self.line[self.let_on]
            self._scheduler.call_soon(self.let_on.room_again)

    def leave(self, holder: Holder) -> None:
        """Forget it. What it holds must be given besides."""
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

    # --- who keeps others waiting -------------------------------------------------------------------------------------

    def watch(self, holder: Holder) -> None:
        """From now on it is its peer's part to move bytes."""
        self._watched[holder] = None

    def unwatch(self, holder: Holder) -> None:
        """It has."""
        self._watched.pop(holder, None)

    def _look(self) -> None:
        """Give up who has not moved enough since the last look, and was there then."""
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
    """Both budgets of one broker, and the buffer that its connections read into, one at a time."""

    def __init__(self, configuration: Configuration, scheduler: Scheduler) -> None:
        stall_ms = configuration.connections_max_stall_ms
        self.requests = Budget("queued.max.request.bytes", configuration.queued_max_request_bytes, stall_ms, scheduler)
        self.answers = Budget("queued.max.response.bytes", configuration.queued_max_response_bytes, stall_ms, scheduler)
        self.long_buffer = memoryview(bytearray(LONG_READ_BYTES))
        self.buffer = self.long_buffer[:READ_BYTES]
        self.scarce_buffer = self.buffer[:SCARCE_READ_BYTES]
