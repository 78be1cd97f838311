"""The ways in which the consumers of a Pulsar subscription share its messages, and which messages it gets."""

from enum import IntEnum

from msgspec import Struct


class SubscriptionType(IntEnum):
    """The way in which the consumers of a subscription share its messages, by Pulsar's numbers."""

    EXCLUSIVE = 0
    SHARED = 1
    FAILOVER = 2
    KEY_SHARED = 3


IN_ORDER = frozenset({SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER})
"""The types that deliver to one active consumer."""


class IsolationLevel(IntEnum):
    """The messages of transactions that a subscription gets, by PIP-298's numbers (`subscriptions/isolation.py`)."""

    READ_COMMITTED = 0
    READ_UNCOMMITTED = 1


class KeySharedMode(IntEnum):
    """The way in which the consumers of a Key_Shared subscription share the hashes of keys, by Pulsar's numbers."""

    AUTO_SPLIT = 0
    STICKY = 1


class KeyShared(Struct, frozen=True):
    """The way in which a consumer wants to share a Key_Shared subscription."""

    mode: KeySharedMode = KeySharedMode.AUTO_SPLIT
    ranges: tuple[tuple[int, int], ...] = ()
    """The first and last hashes of the ranges that it wants (STICKY)."""
    out_of_order: bool = False
    """True if its keys need no order: a key's entries may be with several consumers after its owner has changed."""
