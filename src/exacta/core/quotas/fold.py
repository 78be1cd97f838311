"""The fold of the events of quotas; `core/apply.py` has the table of all events."""

from collections.abc import Callable
from typing import Any

from exacta.core.events import ClientQuotasSet, Event
from exacta.core.state import weights
from exacta.core.state.state import State
from exacta.core.values.usage import Table


def _set(state: State, event: ClientQuotasSet) -> None:
    before = weights.client_quotas(event.entity, state.client_quotas.get(event.entity, {}))
    size = weights.client_quotas(event.entity, event.quotas)
    state.volatile.usage[Table.QUOTAS].change(event.entity, size - before)
    state.volatile.quota_changes += 1
    if event.quotas:
        state.client_quotas[event.entity] = event.quotas
    else:
        state.client_quotas.pop(event.entity, None)


FOLDS: dict[type[Event], Callable[[State, Any], None]] = {ClientQuotasSet: _set}
