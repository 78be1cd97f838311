"""Kafka's names for the phases of groups, as ListGroups and the describing APIs answer them."""

from typing import Final

from exacta.core.state import classic_membership
from exacta.core.state.consumer_membership import GroupPhase

CLASSIC_STATES: Final = {
    classic_membership.Phase.EMPTY: "Empty",
    classic_membership.Phase.PREPARING_REBALANCE: "PreparingRebalance",
    classic_membership.Phase.COMPLETING_REBALANCE: "CompletingRebalance",
    classic_membership.Phase.STABLE: "Stable",
}

CONSUMER_STATES: Final = {
    GroupPhase.EMPTY: "Empty",
    GroupPhase.ASSIGNING: "Assigning",
    GroupPhase.RECONCILING: "Reconciling",
    GroupPhase.STABLE: "Stable",
}


def state_name(phase: classic_membership.Phase | GroupPhase) -> str:
    """Return Kafka's name for the phase of a group of either protocol."""
    return CONSUMER_STATES[phase] if isinstance(phase, GroupPhase) else CLASSIC_STATES[phase]
