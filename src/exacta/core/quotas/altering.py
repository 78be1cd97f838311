"""Quotas come and go (KIP-546): each entity has the values that it was given last."""

from exacta.core.commands import AlterClientQuotas
from exacta.core.events import ClientQuotasSet
from exacta.core.outcome import Outcome
from exacta.core.replies import DONE
from exacta.core.state.state import State


def alter(state: State, command: AlterClientQuotas, now_ms: int) -> Outcome:
    """Alter the quotas of each entity; one whose quotas stay what they are has no event."""
    events = []
    for each in command.alterations:
        known = state.client_quotas.get(each.entity, {})
        altered = {key: value for key, value in {**known, **each.values}.items() if value is not None}
        if altered != known:
            events.append(ClientQuotasSet(entity=each.entity, quotas=altered))
    return Outcome(events=tuple(events), reply=DONE)
