"""The one door to the rules: which function decides which command. Pure and total."""

from collections.abc import Callable
from typing import Any

from exacta.core.access import rules as access
from exacta.core.commands import AppendBatch, Command
from exacta.core.groups import rules as groups
from exacta.core.log import closing, full_disk
from exacta.core.log import rules as log
from exacta.core.outcome import Outcome
from exacta.core.quotas import rules as quotas
from exacta.core.rejections import Rejection
from exacta.core.room import within_bounds
from exacta.core.state.state import State
from exacta.core.subscriptions import rules as subscriptions
from exacta.core.transactions import rules as transactions


def decide(state: State, command: Command, now_ms: int, owner: str = "") -> Outcome:
    """Return what the command leads to; changes nothing.

    `owner` is the host that asks, whose share of the tables it counts towards (`core.values.usage`); empty: none.
    """
    outcome = _DECIDE[type(command)](state, command, now_ms)
    if not outcome.events:
        return outcome
    if state.volatile.disk_room is not None:
        refused = full_disk.refusal(state, state.volatile.disk_room, command, outcome)
        if refused is not None:
            return refused
    return within_bounds(state, command, outcome, owner)


def undecided(state: State, command: Command) -> Outcome:
    """Refuse a command for whose decision the memory does not suffice now; its client may send it again."""
    reason = Rejection.STORAGE_ERROR
    return closing.refused(state, command, reason) if isinstance(command, AppendBatch) else Outcome(reply=reason)


_DECIDE: dict[type[Command], Callable[[State, Any, int], Outcome]] = {
    **log.RULES,
    **transactions.RULES,
    **groups.RULES,
    **subscriptions.RULES,
    **access.RULES,
    **quotas.RULES,
}
