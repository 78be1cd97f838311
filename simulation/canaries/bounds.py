"""Planted bugs of the bounds of the state's tables: what is counted, and what makes room."""

from collections.abc import Hashable
from typing import Any

from exacta.core import snapshot
from exacta.core.state.state import State
from exacta.core.transactions import fold, handle
from exacta.core.values.usage import Usage, no_usage
from simulation.canaries import Replacements, canary


@canary("what is gone goes on counting, until everybody is refused", shows=r"12: \w+ counts")
def bytes_never_given_back() -> Replacements:
    change = Usage.change

    def only_more(self: Usage, key: Hashable, size: int) -> None:
        change(self, key, max(size, 0))

    return [(Usage, "change", only_more)]


@canary("a restart counts from nothing what it has found, so that its bound does not hold", shows=r"12: \w+ counts")
def restart_counts_from_nothing() -> Replacements:
    return [(snapshot, "weigh", lambda state: no_usage())]


@canary("offsets are not counted once their transaction commits", shows=r"12: OFFSETS counts")
def committed_offsets_not_counted() -> Replacements:
    return [(fold, "_weight_of_topic", lambda group, topic: 0)]


@canary("a handle makes room for another one although something takes part in it", shows=r"handles: \d+ makes room")
def room_is_made_by_handles_in_use() -> Replacements:
    given_up = handle._given_up

    def any_of_them(state: State, now_ms: int) -> Any:
        abandoned = state.volatile.abandoned
        state.volatile.abandoned = {key: None for key, each in state.transactions.items() if each.owner is None}
        try:
            return given_up(state, now_ms)
        finally:
            state.volatile.abandoned = abandoned

    return [(handle, "_given_up", any_of_them)]
