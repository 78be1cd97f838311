"""Isolation levels of subscriptions: whether a subscription gets messages of open and of aborted transactions.

The levels are those of PIP-298, which Apache Pulsar has not built, and of Kafka's `isolation.level`.

    a subscription of     gets what lies before      and of aborted transactions
    READ_COMMITTED        the last stable offset     nothing
    READ_UNCOMMITTED      the high watermark         what compaction has left

A consumer asks for a subscription that is durable or not, and committed or not; and its name is nobody's, or belongs to
a subscription:

    asked for \\ it is        nobody's      durable       non-durable, of this level   non-durable, of the other
    durable, committed        is taken      is taken      INVALID                      INVALID
    durable, uncommitted      NOT_DURABLE   NOT_DURABLE   NOT_DURABLE                  NOT_DURABLE
    non-durable, committed    is taken      INVALID       is taken                     DIFFER *
    non-durable, uncommitted  is taken      INVALID       is taken                     DIFFER *

INVALID is INVALID_SUBSCRIPTION, NOT_DURABLE is UNCOMMITTED_NOT_DURABLE, DIFFER is ISOLATION_LEVELS_DIFFER.

* Also while nobody is connected: the consumers of a subscription that was moved are about to come back. PIP-298 has one
level for all consumers of a subscription, too.

A durable subscription cannot be READ_UNCOMMITTED. Its cursor would hold acknowledgements of messages that an abort
takes away. A non-durable one has its level and its acknowledgements for as long as it exists, and no longer.

All other rules are the same for both levels. A message is acknowledged, redelivered and skipped by its offset, whatever
becomes of its transaction.
"""

from exacta.core.commands.subscriptions import Connect, Subscribe
from exacta.core.ids import Offset
from exacta.core.rejections import Rejection
from exacta.core.state.partition import Partition
from exacta.core.state.subscription import NonDurableSubscription, Subscription
from exacta.core.values.subscriptions import IsolationLevel


def isolation_of(subscription: Subscription) -> IsolationLevel:
    """Return the level of a subscription."""
    if isinstance(subscription, NonDurableSubscription):
        return subscription.isolation_level
    return IsolationLevel.READ_COMMITTED


def reads_committed(subscription: Subscription) -> bool:
    """Return whether a subscription gets messages of committed transactions only."""
    return isolation_of(subscription) is IsolationLevel.READ_COMMITTED


def end_of(partition: Partition, subscription: Subscription) -> Offset:
    """Return the offset after the last message that consumers of the subscription may see."""
    return partition.last_stable_offset if reads_committed(subscription) else partition.next_offset


def refusal(found: Subscription | None, command: Subscribe | Connect) -> Rejection | None:
    """Return why a consumer may not use a name for the kind of subscription that it asks for.

    `found` is the subscription of this name.
    """
    if command.durable and command.isolation_level is IsolationLevel.READ_UNCOMMITTED:
        return Rejection.UNCOMMITTED_NOT_DURABLE
    if found is None:
        return None
    if found.is_durable is not command.durable:
        return Rejection.INVALID_SUBSCRIPTION
    return None if isolation_of(found) is command.isolation_level else Rejection.ISOLATION_LEVELS_DIFFER
