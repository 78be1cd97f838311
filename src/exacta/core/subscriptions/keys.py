"""Key_Shared subscriptions: which consumer each hash of a key belongs to.

In the mode AUTO_SPLIT each consumer has an equal part of the hashes, and the parts change when consumers come and go.
In the mode STICKY a hash belongs to the consumer that has named it, or to nobody. The hashes of a consumer that is gone
are nobody's.

    a further consumer                                          is refused
    of another mode, or of another promise of order             SUBSCRIPTION_BUSY
    that names no hash, or not from a lower to a higher one     KEY_RANGES_REFUSED
    that names a hash twice, or one of another consumer         KEY_RANGES_REFUSED
    that names what is no hash                                  KEY_RANGES_REFUSED

Apache Pulsar 4.2 refuses the same ones, but for the last: its clients see to that. An entry whose hash is nobody's
waits until a consumer comes that names the hash.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from exacta.core.rejections import Rejection
from exacta.core.state.delivery import ConnectedConsumer, Delivery
from exacta.core.values.subscriptions import KeyShared, KeySharedMode

HASHES = 1 << 16
"""A consumer of a Key_Shared subscription has some of this many hashes. Of a larger hash the remainder counts, and
1 instead of 0."""


def refusal(delivery: Delivery | None, wanted: KeyShared) -> Rejection | None:
    """Return why a consumer may not share a subscription in this way with those that are connected."""
    has_others = delivery is not None and bool(delivery.consumers)
    if delivery is not None and has_others and not _is_alike(delivery, wanted):
        return Rejection.SUBSCRIPTION_BUSY
    if wanted.mode is KeySharedMode.AUTO_SPLIT:
        return None
    taken = [] if delivery is None or not has_others else [(first, last) for first, last, _ in delivery.ranges]
    ranges = sorted([*wanted.ranges, *taken])
    are_sound = all(0 <= first <= last < HASHES for first, last in wanted.ranges) and bool(wanted.ranges)
    are_free = all(after[0] > before[1] for before, after in pairwise(ranges))
    return None if are_sound and are_free else Rejection.KEY_RANGES_REFUSED


def _is_alike(delivery: Delivery, wanted: KeyShared) -> bool:
    return (delivery.mode, delivery.is_out_of_order) == (wanted.mode, wanted.out_of_order)


def owner(delivery: Delivery, consumers: Sequence[ConnectedConsumer], key: int) -> ConnectedConsumer | None:
    """Return the consumer that a key belongs to; `consumers` are those of the delivery, in order."""
    hash_ = key % HASHES or 1  # Apache Pulsar gives nobody the hash 0
    if delivery.mode is KeySharedMode.AUTO_SPLIT:
        return consumers[hash_ * len(consumers) // HASHES] if consumers else None
    place = bisect_right(delivery.ranges, hash_, key=lambda each: each[0]) - 1
    if place < 0 or delivery.ranges[place][1] < hash_:
        return None
    return delivery.consumers[delivery.ranges[place][2]]
