"""A dispatcher and its consumers, as far as the core hears of them: reads the log and asks who gets what."""

from exacta.core.commands import Acknowledge, Connect, Deliver, Disconnect, Permit, Redeliver
from exacta.core.events import BatchAppended, TransactionEnded
from exacta.core.ids import ConsumerId, Offset, PartitionId, ProducerId
from exacta.core.replies import DONE, Delivered, Delivering, Subscribed
from exacta.core.state.delivery import Delivery, SeenEntry
from exacta.core.state.subscription import Subscription
from exacta.core.subscriptions.delivering import looks_back
from exacta.core.subscriptions.isolation import end_of
from exacta.core.subscriptions.keys import HASHES
from exacta.core.values.runs import Run
from exacta.core.values.subscriptions import IsolationLevel, KeyShared, SubscriptionType
from tests.core.subscriptions.consumer import Consumer, Where
from tests.core.world import Handle, World

KEYS = 3
SPLIT = KeyShared()


def key_of(base: int) -> int:
    """Return the hash of an entry's key: one of three, far apart."""
    return base % KEYS * (HASHES // KEYS)


class Dispatcher:
    """Delivers one subscription of partition 0 to consumers, and remembers what each was sent."""

    def __init__(
        self,
        world: World,
        subscription_type: SubscriptionType,
        name: str = "s",
        *,
        durable: bool = True,
        level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> None:
        self.world = world
        self.type = subscription_type
        self.name = name
        self.where: Where = {"topic": "t", "partition": 0, "subscription": name}
        self.sent: dict[ConsumerId, list[Delivering]] = {}
        self.deliver_at_ms: dict[int, int] = {}
        """The times before which entries are held back, by their names."""
        self.gaps: dict[int, tuple[Run, ...]] = {}
        """The runs that compaction has removed of entries, by the names of the entries."""
        self._last = 0
        self.reads_committed = level is IsolationLevel.READ_COMMITTED
        self._consumer = Consumer(world, name, durable=durable, level=level)
        self.subscribe()

    @property
    def key(self) -> tuple[PartitionId, str]:
        return PartitionId(0), self.name

    @property
    def delivery(self) -> Delivery | None:
        return self.world.state.volatile.deliveries.get(self.key)

    @property
    def subscription(self) -> Subscription:
        return self._consumer.subscription

    def exists(self) -> bool:
        return self._consumer.exists()

    def subscribe(self) -> None:
        assert isinstance(self._consumer.subscribe(subscription_type=self.type), Subscribed)

    def connect(self, name: str = "", permits: int = 0, priority: int = 0, shared: KeyShared = SPLIT) -> ConsumerId:
        self._last += 1
        consumer = ConsumerId(self._last)
        self.ask_to_connect(consumer, name, priority, shared)
        if permits:
            self.permit(consumer, permits)
        return consumer

    def ask_to_connect(
        self, consumer: ConsumerId, name: str = "", priority: int = 0, shared: KeyShared = SPLIT
    ) -> object:
        answer = self.world.send(
            Connect(
                **self.where,
                consumer_id=consumer,
                subscription_type=self.type,
                name=name,
                priority=priority,
                key_shared=shared,
                **self._consumer.kind,
            )
        )
        if answer == DONE:
            self.sent[consumer] = []
        return answer

    def disconnect(self, consumer: ConsumerId) -> None:
        assert self.world.send(Disconnect(**self.where, consumer_id=consumer)) == DONE
        self.sent.pop(consumer, None)

    def permit(self, consumer: ConsumerId, permits: int) -> object:
        return self.world.send(Permit(**self.where, consumer_id=consumer, permits=permits))

    def redeliver(self, consumer: ConsumerId, *bases: int) -> object:
        named = tuple(Offset(base) for base in bases) if bases else None
        return self.world.send(Redeliver(**self.where, consumer_id=consumer, entries=named))

    def acknowledge(self, each: Delivering, inside: Handle | None = None) -> object:
        """Acknowledge what is free of an entry."""
        transaction = None if inside is None else inside.transaction_id
        return self.world.send(Acknowledge(**self.where, runs=each.free, transaction=transaction))

    def pump(self) -> list[tuple[ConsumerId, Delivering]]:
        """Deliver until nobody takes any more; return what was sent."""
        sent: list[tuple[ConsumerId, Delivering]] = []
        while self.delivery is not None:
            end = end_of(self.world.state.partitions[PartitionId(0)], self.subscription)
            sent += self.look_back(self.delivery, end)
            begin = self.delivery.read_to
            found = self.deliver(begin, end)
            if not found and self.delivery.read_to in (begin, end):
                break
            sent += [(each.consumer_id, each) for each in found]
        return sent

    def look_back(self, delivery: Delivery, end: Offset) -> list[tuple[ConsumerId, Delivering]]:
        """Read again what lies at the position, as far as it is for nobody; return what was sent of what waits."""
        sent: list[tuple[ConsumerId, Delivering]] = []
        looked_at = None
        while looks_back(self.subscription, delivery) and looked_at != self.subscription.position:
            looked_at = self.subscription.position
            sent += [(each.consumer_id, each) for each in self.deliver(looked_at, end)]
        return sent

    def deliver(self, begin: Offset, end: Offset) -> list[Delivering]:
        """Deliver what waits, and what lies between two offsets."""
        seen = tuple(self.shown(begin, end))
        answer = self.world.send(Deliver(**self.where, seen=seen, read_from=begin, read_to=end))
        assert isinstance(answer, Delivered)
        for each in answer.entries:
            self.sent[each.consumer_id].append(each)
        return list(answer.entries)

    def shown(self, begin: Offset, end: Offset) -> list[SeenEntry]:
        """Return the entries that the subscription's isolation level shows between two offsets, by the log alone."""
        began: dict[ProducerId, list[BatchAppended]] = {}
        found: list[BatchAppended] = []
        for event in self.world.log:
            if isinstance(event, BatchAppended) and event.partition_id == 0:
                if event.transactional and self.reads_committed:
                    began.setdefault(event.producer_id, []).append(event)
                else:
                    found.append(event)
            elif isinstance(event, TransactionEnded):
                for producer_id in event.producer_ids:
                    found += began.pop(producer_id, []) if event.committed else []
                    began.pop(producer_id, None)
        return [
            SeenEntry(
                event.base_offset,
                event.record_count,
                key_of(event.base_offset),
                self.deliver_at_ms.get(event.base_offset, 0),
                self.gaps.get(event.base_offset, ()),
            )
            for event in sorted(found, key=lambda event: event.base_offset)
            if begin < event.base_offset + event.record_count and event.base_offset < end
        ]
