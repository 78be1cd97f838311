"""Kafka's names for the phases of groups, as ListGroups and the describing APIs answer them."""

from typing import Final

from exacta.core.values import classic_groups
from exacta.core.values.consumer_groups import GroupPhase

CLASSIC_STATES: Final = {
    classic_groups.Phase.EMPTY: "Empty",
    classic_groups.Phase.PREPARING_REBALANCE: "PreparingRebalance",
    classic_groups.Phase.COMPLETING_REBALANCE: "CompletingRebalance",
    classic_groups.Phase.STABLE: "Stable",
}

CONSUMER_STATES: Final = {
    GroupPhase.EMPTY: "Empty",
    GroupPhase.ASSIGNING: "Assigning",
    GroupPhase.RECONCILING: "Reconciling",
    GroupPhase.STABLE: "Stable",
}


def state_name(phase: classic_groups.Phase | GroupPhase) -> str:
    """Return Kafka's name for the phase of a group of either protocol."""
    return CONSUMER_STATES[phase] if isinstance(phase, GroupPhase) else CLASSIC_STATES[phase]
