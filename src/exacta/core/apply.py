"""The fold: how each event changes the state. Nothing here can refuse or fail; `decide` has looked before."""

from collections.abc import Callable
from typing import Any

from exacta.core.access import fold as access
from exacta.core.events import EntriesOwned, Event
from exacta.core.groups import fold as groups
from exacta.core.log import fold as log
from exacta.core.quotas import fold as quotas
from exacta.core.room import own
from exacta.core.state.state import State
from exacta.core.subscriptions import fold as subscriptions
from exacta.core.transactions import fold as transactions


def apply(state: State, event: Event) -> None:
    """Change the state by one event."""
    _APPLY[type(event)](state, event)


_APPLY: dict[type[Event], Callable[[State, Any], None]] = {
    **log.FOLDS,
    **transactions.FOLDS,
    **groups.FOLDS,
    **subscriptions.FOLDS,
    **access.FOLDS,
    **quotas.FOLDS,
    EntriesOwned: own,
}
