"""The events of subscriptions.

A subscription is named by its partition and its name. A message is named by its offset.
"""

from typing import ClassVar

from exacta.core.event import Event
from exacta.core.ids import NO_PRINCIPAL, ConsumerId, Offset, PartitionId, PrincipalName, TransactionId
from exacta.core.state.delivery import SeenEntry
from exacta.core.state.redeliveries import RedeliveryCount
from exacta.core.values.runs import Run
from exacta.core.values.subscriptions import IsolationLevel, KeyShared, SubscriptionType


class SubscriptionCreated(Event, frozen=True, kw_only=True, array_like=True):
    """A partition has a subscription, whose first message to come is at the position."""

    partition_id: PartitionId
    name: str
    position: Offset
    subscription_type: SubscriptionType
    properties: dict[str, str]
    at_ms: int
    principal: PrincipalName = NO_PRINCIPAL


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

    What is pending in open transactions stays pending, also before the position.
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
    counts: tuple[RedeliveryCount, ...] = ()
    """The redelivery counts that have grown, of entries that are still to be delivered (decision 0061)."""


class MessagesAcknowledgedInTransaction(Event, frozen=True, kw_only=True, array_like=True):
    """These messages, or all messages before an offset, are acknowledged once the transaction commits."""

    transaction_id: TransactionId
    partition_id: PartitionId
    name: str
    runs: tuple[Run, ...] = ()
    before: Offset = Offset(0)
    counts: tuple[RedeliveryCount, ...] = ()


class NonDurableSubscriptionCreated(SubscriptionCreated, frozen=True, kw_only=True, array_like=True):
    """Volatile: a partition has a subscription that is gone with its last consumer, or with a restart."""

    durable: ClassVar[bool] = False
    isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED


class NonDurableSubscriptionDeleted(SubscriptionDeleted, frozen=True, kw_only=True, array_like=True):
    """Volatile: a non-durable subscription is gone with its acknowledgements."""

    durable: ClassVar[bool] = False


class NonDurableSubscriptionMoved(SubscriptionMoved, frozen=True, kw_only=True, array_like=True):
    """Volatile: a non-durable subscription goes on at the position; it waits for its consumers to come back."""

    durable: ClassVar[bool] = False
    at_ms: int


class NonDurableMessagesAcknowledged(MessagesAcknowledged, frozen=True, kw_only=True, array_like=True):
    """Volatile: these messages of a non-durable subscription are acknowledged, and all messages before an offset."""

    durable: ClassVar[bool] = False


class ConsumerConnected(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: a consumer is there. `active` is the one that an Exclusive or Failover subscription delivers to."""

    durable: ClassVar[bool] = False
    partition_id: PartitionId
    name: str
    consumer_id: ConsumerId
    subscription_type: SubscriptionType
    consumer_name: str
    priority: int
    active: ConsumerId | None
    key_shared: KeyShared = KeyShared()


class ConsumerDisconnected(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: a consumer is gone. What it had waits to be delivered, and its redelivery count does not grow."""

    durable: ClassVar[bool] = False
    partition_id: PartitionId
    name: str
    consumer_id: ConsumerId
    active: ConsumerId | None


class PermitsGranted(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: a consumer takes this many messages more."""

    durable: ClassVar[bool] = False
    partition_id: PartitionId
    name: str
    consumer_id: ConsumerId
    permits: int


class EntriesDelivered(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: consumers have these entries, and each entry has taken this many permits.

    Every entry before `read_to` is known now. Those of `noted` wait, and `passed` are offsets that are for nobody.
    """

    durable: ClassVar[bool] = False
    partition_id: PartitionId
    name: str
    read_to: Offset
    given: tuple[tuple[ConsumerId, SeenEntry, int], ...]
    noted: tuple[SeenEntry, ...] = ()
    passed: tuple[Run, ...] = ()


class EntriesTakenBack(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: these entries wait to be delivered again; an empty tuple: everything from the position on."""

    durable: ClassVar[bool] = False
    partition_id: PartitionId
    name: str
    entries: tuple[Offset, ...]
    is_counted: bool = True
    """True if their redelivery counts grow."""


class DelaysEnded(Event, frozen=True, kw_only=True, array_like=True):
    """Volatile: the time of these entries has come, so that they wait to be delivered."""

    durable: ClassVar[bool] = False
    partition_id: PartitionId
    name: str
    entries: tuple[Offset, ...]
