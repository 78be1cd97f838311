"""What becomes of open transactions when the machine stops (decision 0016).

A write into an open transaction is acknowledged before it is durable, once its transaction's begin is: all that it
promises is that the transaction's end will tell. So where such writes may be missing, the transaction cannot be allowed
to commit any more. It is aborted and its producer fenced, as when it is open for too long; its client is told the same.

Spared is what was durable with its acknowledgement: transactions that take part in two-phase commits, and those that
were kept, since a keeping is durable, and nothing is written after it (KIP-939).
"""

from exacta.core.binding import taken_away
from exacta.core.commands import AbortAfterLoss
from exacta.core.ids import Cause
from exacta.core.outcome import Outcome
from exacta.core.replies import DONE
from exacta.core.state import Phase, State, Transactional


def open_to_loss(state: State) -> list[AbortAfterLoss]:
    """Return what must be done if the state was recovered from a journal that may lack writes."""
    return [
        AbortAfterLoss(transactional_id=held.transactional_id)
        for held in state.transactionals.values()
        if _is_open_to_loss(held)
    ]


def abort_after_loss(state: State, command: AbortAfterLoss, now_ms: int) -> Outcome:
    """Abort the transaction, and fence its producer by a bumped epoch."""
    held = state.transactionals.get(command.transactional_id)
    if held is None or not _is_open_to_loss(held):
        return Outcome(reply=DONE)
    return Outcome(events=taken_away(state, held, cause=Cause.LOSS, now_ms=now_ms, client=("", "")), reply=DONE)


def _is_open_to_loss(held: Transactional) -> bool:
    return held.phase is Phase.ONGOING and held.kept is None and held.deadline_ms is not None
