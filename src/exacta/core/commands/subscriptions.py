"""The commands to subscriptions."""

from typing import ClassVar

from msgspec import field

from exacta.core.command import Command
from exacta.core.ids import NO_PRINCIPAL, ConsumerId, Offset, PrincipalName, TransactionId
from exacta.core.promises import Promise
from exacta.core.state.delivery import SeenEntry
from exacta.core.values.runs import Run
from exacta.core.values.subscriptions import IsolationLevel, KeyShared, SubscriptionType

EARLIEST, LATEST = Offset(-2), Offset(-1)
"""These stand for the start of the log and for its end, as offsets that no message has."""


class Subscribe(Command, frozen=True, kw_only=True):
    """Find a subscription, or create it where there is none; `subscription_type` is how it is used from now on.

    A new one begins at an offset, or at `EARLIEST` or `LATEST`. `properties` are those of a new one. One that is not
    durable is for readers: it is gone with its last consumer, and also begins at an offset beyond the end, which stands
    for the end.
    """

    topic: str
    partition: int
    subscription: str
    subscription_type: SubscriptionType
    begin: Offset = LATEST
    properties: dict[str, str] = field(default_factory=dict)
    durable: bool = True
    isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED
    principal: PrincipalName = NO_PRINCIPAL


class ForgetIdleSubscription(Command, frozen=True, kw_only=True):
    """Delete a non-durable subscription if it has waited for a consumer for too long (a timer)."""

    promises: ClassVar[Promise] = Promise.INSIDE

    topic: str
    partition: int
    subscription: str


class Unsubscribe(Command, frozen=True, kw_only=True):
    """Delete a subscription for one of its consumers, if it is the only one; None: also with consumers connected."""

    topic: str
    partition: int
    subscription: str
    consumer_id: ConsumerId | None = None


class Seek(Command, frozen=True, kw_only=True):
    """Let a subscription go on at an offset, or at `EARLIEST` or `LATEST`."""

    topic: str
    partition: int
    subscription: str
    to: Offset


class Skip(Command, frozen=True, kw_only=True):
    """Acknowledge all messages before an offset in a consumer's place; `LATEST`: all that its consumers may see by now.

    Without a subscription it is for all durable ones of the partition, or for as many of them as one step takes.
    """

    topic: str
    partition: int
    before: Offset
    subscription: str | None = None


class Acknowledge(Command, frozen=True, kw_only=True):
    """Acknowledge these messages, or all messages before an offset; in a transaction where one is named.

    A message is named by its offset. An entry of several messages is a run. If a consumer is named, it must still be
    connected: what it has got before the subscription was moved is not acknowledged afterwards.
    """

    promises: ClassVar[Promise] = Promise.WRITE

    topic: str
    partition: int
    subscription: str
    runs: tuple[Run, ...] = ()
    before: Offset | None = None
    transaction: TransactionId | None = None
    consumer_id: ConsumerId | None = None
    """The consumer that acknowledges, where its client says which one it is."""
    may_repeat: bool = False
    """True: the client repeats a command whose answer it has lost. Messages that the same transaction has acknowledged
    one by one are no conflict then, if they are all that the command names."""


class AcknowledgeSoon(Acknowledge, frozen=True, kw_only=True):
    """Acknowledge messages for a client that asks for no answer: a stop of the machine may forget it."""

    promises: ClassVar[Promise] = Promise.SOON


class Connect(Command, frozen=True, kw_only=True):
    """Let a consumer take messages of a subscription. Its front chooses the id, and never uses it again.

    It follows a Subscribe of the same step, and is refused where that was refused because of the subscription's kind.
    """

    topic: str
    partition: int
    subscription: str
    consumer_id: ConsumerId
    subscription_type: SubscriptionType
    name: str = ""
    priority: int = 0
    key_shared: KeyShared = KeyShared()
    """It counts for a Key_Shared subscription only."""
    durable: bool = True
    isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED


class Disconnect(Command, frozen=True, kw_only=True):
    """Let a consumer have and take no messages any more. There is nothing to do where it is gone."""

    promises: ClassVar[Promise] = Promise.INSIDE

    topic: str
    partition: int
    subscription: str
    consumer_id: ConsumerId


class Permit(Command, frozen=True, kw_only=True):
    """Let a consumer be sent this many messages more (FLOW), or fewer where its front cannot send now."""

    promises: ClassVar[Promise] = Promise.INSIDE

    topic: str
    partition: int
    subscription: str
    consumer_id: ConsumerId
    permits: int


class Deliver(Command, frozen=True, kw_only=True):
    """Give consumers the entries that wait, and those that were read from the log.

    `seen` are the entries from `read_from` on to `read_to` that have messages for readers of the subscription's
    isolation level. They are left alone if delivery goes on elsewhere by now. Those that were read from the position
    on, where delivery has been already, say what is for nobody there.
    """

    promises: ClassVar[Promise] = Promise.INSIDE

    topic: str
    partition: int
    subscription: str
    seen: tuple[SeenEntry, ...] = ()
    read_from: Offset = Offset(0)
    read_to: Offset = Offset(0)


class Redeliver(Command, frozen=True, kw_only=True):
    """Take entries back from a consumer, and deliver them again; None: all that it has.

    Their redelivery counts grow, unless the consumer was never sent them.
    """

    promises: ClassVar[Promise] = Promise.INSIDE

    topic: str
    partition: int
    subscription: str
    consumer_id: ConsumerId
    entries: tuple[Offset, ...] | None = None
    is_counted: bool = True


class EndDelays(Command, frozen=True, kw_only=True):
    """Let entries be delivered whose time has come (a timer)."""

    promises: ClassVar[Promise] = Promise.INSIDE

    topic: str
    partition: int
    subscription: str
