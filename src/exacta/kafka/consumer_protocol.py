"""The words that consumers exchange through a group (classic protocol), as far as a broker reads them."""

import struct
from collections.abc import Iterable

from exacta.core.state.classic_membership import CONSUMERS
from exacta.kafka.request_size import FEWEST_ELEMENTS


def subscribed_topics(protocol_type: str, protocols: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics that a member subscribes to; None where it is no consumer, or what it says cannot be read.

    Nor is it read where there is more of it than one request may have elements, by the rule of `request_size.py`.

    `protocols` are the subscriptions, one for each assignor: a version and the topics come first in every version.
    """
    if protocol_type != CONSUMERS:
        return None
    topics: set[str] = set()
    left = FEWEST_ELEMENTS
    try:
        for subscription in protocols:
            (count,), at = struct.unpack_from(">i", subscription, 2), 6
            left -= max(count, 0)
            if left < 0:
                return None
            for _ in range(count):
                (length,) = struct.unpack_from(">h", subscription, at)
                name = bytes(subscription[at + 2 : at + 2 + length])
                if length < 0 or len(name) < length:
                    return None
                topics.add(name.decode())
                at += 2 + length
    except (struct.error, UnicodeDecodeError):
        return None
    return frozenset(topics)
