"""Planted bugs of what is kept for subscriptions: retention, expiry, and the quota of a backlog."""

from exacta.core.apply import _APPLY
from exacta.core.events import AppendsRefused
from exacta.core.log import keeping
from exacta.engine import backlog
from simulation.canaries import Replacements, canary


@canary(
    "retention deletes what a subscription has not acknowledged",
    shows=r"10: LogStartMoved.* deletes messages .*, which nobody has acknowledged",
)
def retention_passes_subscriptions() -> Replacements:
    return [(keeping, "slowest_position", lambda partition: None)]


@canary("messages expire, or are evicted, before their time", shows=r"expired: ")
def young_messages_expire() -> Replacements:
    return [(backlog, "first_young", lambda reader, stream, since_ms, offset, end_offset: end_offset)]


@canary("a partition whose backlog quota is exceeded takes batches", shows=r"quota: ")
def full_partitions_take_batches() -> Replacements:
    return [(_APPLY, AppendsRefused, lambda state, event: None)]
