"""Recovery: the state, and the clock, with which an engine begins.

A local journal is read at each start. A follower has read a shared one all along, and goes on from there when it leads
(`replica`). Owns the order of the steps. Owns neither what a snapshot and an event mean (`core.snapshot`,
`core.apply`), nor what is done about a loss (`core.transactions.loss`), nor how the files are read (the journal).
"""

import logging
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from exacta.core.apply import apply
from exacta.core.commands import AbortAfterLoss, Command
from exacta.core.event_codec import decode_event
from exacta.core.outcome import Timer
from exacta.core.snapshot import after_recovery, restore
from exacta.core.state.state import State
from exacta.core.transactions.expiry import latest_noted_ms, timers_after_recovery
from exacta.core.transactions.loss import fences_after_loss
from exacta.core.values.limits import Limits
from exacta.ports.journal import Journal

logger = logging.getLogger(__name__)


class Replayed(Struct, frozen=True, kw_only=True):
    """The state as the journal has it."""

    state: State
    events: int
    """The number of events that were read after the snapshot."""


class Recovered(Struct, frozen=True, kw_only=True):
    """The state as the journal has it, and what an engine does first with it."""

    state: State
    clock: Callable[[], int]
    """The engine's clock from now on: no time that it gives is before one that the state has noted (decision 0018)."""
    timers: Sequence[Timer]
    fences: Sequence[Command]
    """Commands for the first group that is appended: they say what follows from a loss of writes."""
    events: int
    """The number of events that were read after the snapshot."""


def recover(journal: Journal, limits: Limits, clock: Callable[[], int]) -> Recovered:
    """Read the state from a journal that was just opened, and let it go on. Blocks; raises what `replay` raises."""
    return go_on(replay(journal.replay, limits), clock, may_have_lost=journal.may_have_lost)


def replay(read: Callable[[], tuple[bytes | None, Iterator[bytes]]], limits: Limits) -> Replayed:
    """Return the state of the snapshot and the events after it that `read` returns, as `Journal.replay` does. Blocks.

    Raises JournalError where the journal cannot be read, msgspec.DecodeError where its events are not ours.
    """
    blob, events = read()
    state, found = restore(blob, limits), 0
    del blob  # it may be as large as the state, and a start must not need the memory for both longer than it has to
    for event in events:
        apply(state, decode_event(event))
        found += 1
    return Replayed(state=state, events=found)


def go_on(replayed: Replayed, clock: Callable[[], int], *, may_have_lost: bool) -> Recovered:
    """Let a state go on that was read: as of this moment commands may be decided on it.

    `may_have_lost` is the journal's. The clock is put forward where it is behind what the state has noted.
    """
    state = replayed.state
    after_recovery(state, may_have_forgotten=may_have_lost)
    behind_ms = latest_noted_ms(state) - clock()
    if behind_ms > 0:
        logger.warning("the machine's clock is %d seconds behind what was noted earlier", behind_ms // 1000)
        clock = _ahead(clock, behind_ms)
    fences: Sequence[Command] = fences_after_loss(state) if may_have_lost else ()
    handles = sum(isinstance(each, AbortAfterLoss) for each in fences)
    if fenced := len(fences) - handles:
        logger.warning(
            "the machine stopped, and may have lost writes: %d transactional producers are fenced, their open "
            "transactions aborted",
            fenced,
        )
    if handles:
        logger.warning(
            "the machine stopped, and may have lost writes: %d open transactions without a transactional id are "
            "aborted",
            handles,
        )
    return Recovered(
        state=state, clock=clock, timers=timers_after_recovery(state, clock()), fences=fences, events=replayed.events
    )


def _ahead(clock: Callable[[], int], by_ms: int) -> Callable[[], int]:
    return lambda: clock() + by_ms
