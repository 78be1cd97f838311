"""The events of subscriptions; `core/events.py` gathers them with all others.

A subscription is named by its partition and its name. A message is named by its offset.
"""

from exacta.core.event import Event
from exacta.core.ids import Offset, PartitionId, TransactionId
from exacta.core.state.runs import Run
from exacta.core.state.subscription import SubscriptionType


class SubscriptionCreated(Event, frozen=True, kw_only=True, array_like=True):
    """A partition has a subscription, whose first message to come is at the position."""

    partition_id: PartitionId
    name: str
    position: Offset
    subscription_type: SubscriptionType
    properties: dict[str, str]
    at_ms: int


class SubscriptionChanged(Event, frozen=True, kw_only=True, array_like=True):
    """The subscription is used in this way from now on."""

    partition_id: PartitionId
    name: str
    subscription_type: SubscriptionType
    properties: dict[str, str]


class SubscriptionDeleted(Event, frozen=True, kw_only=True, array_like=True):
    """The subscription is gone with its acknowledgements, those of open transactions included."""

    partition_id: PartitionId
    name: str


class SubscriptionMoved(Event, frozen=True, kw_only=True, array_like=True):
    """The subscription goes on at the position, as if no message from there on had been acknowledged.

    What is pending in open transactions from the position on stays pending.
    """

    partition_id: PartitionId
    name: str
    position: Offset


class MessagesAcknowledged(Event, frozen=True, kw_only=True, array_like=True):
    """These messages are acknowledged, and all messages before an offset, also where they were pending."""

    partition_id: PartitionId
    name: str
    runs: tuple[Run, ...] = ()
    before: Offset = Offset(0)


class MessagesAcknowledgedInTransaction(Event, frozen=True, kw_only=True, array_like=True):
    """These messages, or all messages before an offset, are acknowledged once the transaction commits."""

    transaction_id: TransactionId
    partition_id: PartitionId
    name: str
    runs: tuple[Run, ...] = ()
    before: Offset = Offset(0)
