"""Questions about quotas."""

from collections.abc import Mapping

from exacta.core.state.state import State
from exacta.core.values.quotas import QuotaEntity, QuotaKey


def all_quotas(state: State, now_ms: int) -> list[tuple[QuotaEntity, Mapping[QuotaKey, float]]]:
    """Return the quotas of all entities, in the order in which these got them. No event changes what is returned."""
    return list(state.client_quotas.items())
