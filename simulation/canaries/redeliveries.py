"""Planted bugs of redelivery counts."""

from exacta.core.ids import Offset
from exacta.core.state import subscription
from exacta.core.state.delivery import Delivery
from exacta.core.state.subscription import Subscription
from simulation.canaries import Replacements, canary


@canary("a restart forgets how often a message was delivered (KIP-932)", shows=r"redeliveries: ")
def redeliveries_forgotten() -> Replacements:
    def only_in_memory(self: Delivery, of: Subscription, base: Offset) -> int:
        entry = self.entries.get(base)
        return 0 if entry is None else entry.redeliveries

    return [(Delivery, "redeliveries_of", only_in_memory)]


@canary("the count of a message stays after the message is acknowledged", shows=r"redeliveries: .* knows")
def acknowledged_ones_keep_counts() -> Replacements:
    return [(subscription, "forget_done", lambda known, runs, acknowledged, position: None)]
