"""A consumer of a subscription, as far as the core hears of it."""

from typing import TypedDict

from exacta.core.commands import Acknowledge, AcknowledgeSoon, AppendBatch, Connect, Seek, Subscribe, Unsubscribe
from exacta.core.commands.subscriptions import EARLIEST
from exacta.core.ids import ConsumerId, Offset, PartitionId
from exacta.core.replies import Subscribed
from exacta.core.state.subscription import Subscription
from exacta.core.values.runs import Run
from exacta.core.values.subscriptions import IsolationLevel, SubscriptionType
from tests.core.world import Handle, World


def runs(*pairs: tuple[int, int]) -> tuple[Run, ...]:
    return tuple((Offset(first), Offset(last)) for first, last in pairs)


class Where(TypedDict):
    """The fields by which commands name a subscription."""

    topic: str
    partition: int
    subscription: str


class Kind(TypedDict):
    """What a subscription stays as long as it is there."""

    durable: bool
    isolation_level: IsolationLevel


class Consumer:
    """Acknowledges messages of one partition's subscription by their offsets."""

    def __init__(
        self,
        world: World,
        name: str = "s",
        partition: int = 0,
        *,
        durable: bool = True,
        level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> None:
        self.world = world
        self.name = name
        self.kind: Kind = {"durable": durable, "isolation_level": level}
        self._where: Where = {"topic": "t", "partition": partition, "subscription": name}
        self.key = (PartitionId(partition), name)

    def subscribe(
        self, begin: int = EARLIEST, subscription_type: SubscriptionType = SubscriptionType.SHARED, **properties: str
    ) -> object:
        return self.world.send(
            Subscribe(
                **self._where,
                subscription_type=subscription_type,
                begin=Offset(begin),
                properties=dict(properties),
                **self.kind,
            )
        )

    def begin(self) -> "Consumer":
        assert isinstance(self.subscribe(), Subscribed)
        return self

    @property
    def subscription(self) -> Subscription:
        found = self.world.state.subscription(self.key)
        assert found is not None
        return found

    def exists(self) -> bool:
        return self.key[0] in self.world.state.partitions and self.world.state.subscription(self.key) is not None

    def acknowledge(
        self, *pairs: tuple[int, int], inside: Handle | None = None, soon: bool = False, may_repeat: bool = False
    ) -> object:
        command = AcknowledgeSoon if soon else Acknowledge
        transaction = None if inside is None else inside.transaction_id
        return self.world.send(
            command(**self._where, runs=runs(*pairs), transaction=transaction, may_repeat=may_repeat)
        )

    def acknowledge_before(
        self, offset: int, inside: Handle | None = None, consumer_id: ConsumerId | None = None
    ) -> object:
        transaction = None if inside is None else inside.transaction_id
        return self.world.send(
            Acknowledge(**self._where, before=Offset(offset), transaction=transaction, consumer_id=consumer_id)
        )

    def seek(self, to: int) -> object:
        return self.world.send(Seek(**self._where, to=Offset(to)))

    def unsubscribe(self, consumer_id: ConsumerId | None = None) -> object:
        return self.world.send(Unsubscribe(**self._where, consumer_id=consumer_id))

    def connect(self, consumer_id: ConsumerId, subscription_type: SubscriptionType, name: str) -> object:
        return self.world.send(
            Connect(
                **self._where,
                consumer_id=consumer_id,
                subscription_type=subscription_type,
                name=name,
                **self.kind,
            )
        )

    def write(self, count: int = 1) -> None:
        """Write a batch that belongs to no transaction."""
        self.world.send(
            AppendBatch(
                topic="t",
                partition=self.key[0],
                record_count=count,
                size=61 + count,
                max_timestamp_ms=self.world.now_ms,
            )
        )

    def state_of(self, message: int) -> str:
        """Return whether a message is free, acknowledged, or pending in which transaction."""
        found = self.subscription
        if found.is_acknowledged(Offset(message), Offset(message)):
            return "acknowledged"
        holder = found.pending_in(Offset(message), Offset(message))
        return "free" if holder is None else f"pending in {holder}"
