"""Every ledger, for the tests of its contract: how sessions on it are opened, and which faults can be made.

A bench yields itself from a context manager, and is named in `BENCHES`. Its loop runs the callbacks: a loop of virtual
time where nothing real is waited for, else asyncio's own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import Enum, auto
from functools import partial
from random import Random
from typing import Any, Protocol, TypeVar

from exacta.adapters.memory import DatabaseWire, MemoryDatabase, MemoryLedger
from exacta.ports.journal import Buffer
from exacta.ports.shared import Claimed, Ledger, TailGroup
from simulation.loop import SimulatedLoop

T = TypeVar("T")
PATIENCE_SECONDS = 60
"""A failing test ends then; a passing one waits only for the event itself."""
TIMEOUT_SECONDS = 1.0
"""The ledgers of a bench wait this long for a reply."""


class Ability(Enum):
    """A fault that a bench can make, or a thing that not every ledger does."""

    CUT = auto()
    LOSE_REPLIES = auto()
    RESTART = auto()
    CUTS_TAIL_AT_ONCE = auto()
    """Groups before `tail_from` are gone in the moment in which they may go."""


class LedgerBench(Protocol):
    """One log's ledger under test, which any number of brokers open."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop on which its ledgers call back."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """The faults that it can make, and what its ledgers do beyond the contract."""

    def open(self) -> Ledger:
        """Return the ledger of one more broker; it waits `TIMEOUT_SECONDS` for replies."""

    def pass_ms(self, ms: int) -> None:
        """Let time pass on the ledger's clock: what it has noted is so much older."""

    def cut(self, ledger: Ledger) -> None:
        """Let nothing pass between this ledger and its database, in either direction (`CUT`)."""

    def mend(self, ledger: Ledger) -> None:
        """End the cut."""

    def lose_reply(self, ledger: Ledger) -> None:
        """Carry out the next request of this ledger, and let its reply be lost (`LOSE_REPLIES`)."""

    def restart(self) -> None:
        """Restart the database as after a crash; return when it serves (`RESTART`)."""


class MemoryBench:
    """The ledger in memory, over wires and a disk that take as long as the dice say."""

    abilities = frozenset(Ability)

    def __init__(self) -> None:
        self.loop = SimulatedLoop()
        self.database = MemoryDatabase(self.loop, self._now_ms)
        chance = Random("ledger")
        self._seconds = partial(chance.uniform, 0.0, 0.002)
        self.database.primary.commit_seconds = self._seconds
        self._passed_ms = 1_700_000_000_000
        self.wires: dict[Ledger, DatabaseWire] = {}

    def _now_ms(self) -> int:
        return self._passed_ms + int(self.loop.time() * 1_000)

    def open(self) -> Ledger:
        wire = DatabaseWire(self.loop)
        wire.requests.seconds = wire.replies.seconds = self._seconds
        ledger = MemoryLedger(self.database, self.loop, wire, timeout_seconds=TIMEOUT_SECONDS)
        self.wires[ledger] = wire
        return ledger

    def pass_ms(self, ms: int) -> None:
        self._passed_ms += ms

    def cut(self, ledger: Ledger) -> None:
        self.wires[ledger].cut()

    def mend(self, ledger: Ledger) -> None:
        self.wires[ledger].mend()

    def lose_reply(self, ledger: Ledger) -> None:
        self.wires[ledger].replies.to_lose += 1

    def restart(self) -> None:
        self.database.restart()


@contextmanager
def memory() -> Iterator[LedgerBench]:
    bench = MemoryBench()
    yield bench
    bench.loop.close()


@contextmanager
def postgres() -> Iterator[LedgerBench]:
    from tests.adapters.postgres_bench import postgres_bench  # the extra, where it is needed

    with postgres_bench(PATIENCE_SECONDS / 2) as bench:  # nothing is waited for: its cuts end connections
        yield bench


BENCHES: dict[str, Callable[[], AbstractContextManager[LedgerBench]]] = {"memory": memory, "postgres": postgres}


def call(bench: LedgerBench, start: Callable[..., object], *arguments: object) -> "asyncio.Future[Any]":
    """Call with these arguments and a callback; return what it will be called with, which is later, and once."""
    future: asyncio.Future[Any] = bench.loop.create_future()
    is_inside = True

    def done(result: object) -> None:
        assert not is_inside, "called back from inside the call"
        future.set_result(result)  # raises if there was a call before

    start(*arguments, done)
    is_inside = False
    return future


def wait(bench: LedgerBench, start: Callable[..., object], *arguments: object) -> Any:
    """Call with these arguments and a callback; return what it is called with."""
    return run(bench, call(bench, start, *arguments))


def run(bench: LedgerBench, work: Awaitable[T]) -> T:
    """Run the loop until this is done."""
    return bench.loop.run_until_complete(asyncio.wait_for(work, PATIENCE_SECONDS))


def together(bench: LedgerBench, *work: Awaitable[Any]) -> list[Any]:
    """Run the loop until all of these are done."""

    async def gathered() -> list[Any]:
        return await asyncio.gather(*work)

    return run(bench, gathered())


def group(epoch: int, position: int, body: Buffer = b"group", *, durable: int = 0, catalog: int = 0) -> TailGroup:
    """Return a group."""
    return TailGroup(position, position + len(body), epoch, durable, catalog, body)


def take_lead(bench: LedgerBench, ledger: Ledger, node_id: int = 1) -> int:
    """Take the lead, and return the epoch."""
    head = wait(bench, ledger.read_head)
    claimed = wait(bench, ledger.claim, head, node_id, f"instance {node_id}")
    assert isinstance(claimed, Claimed)
    assert claimed.epoch == head.epoch + 1
    return int(head.epoch) + 1


def tail(bench: LedgerBench, ledger: Ledger, position: int = 0) -> list[TailGroup]:
    """Return all groups of the tail from this position on."""
    found: list[TailGroup] = []
    while groups := wait(bench, ledger.read_tail, position, 1 << 20):
        found += [each._replace(body=bytes(each.body)) for each in groups]
        position = found[-1].end
    return found
