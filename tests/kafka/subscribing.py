"""A subscription of Pulsar's on a broker whose front speaks Kafka's protocol: it is made and used by plain commands."""

import threading
from typing import Any

from exacta.core.commands import Acknowledge, Command, Connect, Permit, Redeliver, Seek, Subscribe, Unsubscribe
from exacta.core.commands.subscriptions import EARLIEST
from exacta.core.ids import ConsumerId, Offset, TransactionId
from exacta.core.values.subscriptions import SubscriptionType
from tests.kafka.wire import ANSWER_SECONDS, Front


class Subscriber:
    """A subscription, as another front would use it."""

    def __init__(
        self,
        broker: Front,
        name: str = "s",
        *,
        topic: str = "t",
        partition: int = 0,
        kind: SubscriptionType = SubscriptionType.SHARED,
        begin: Offset = EARLIEST,
        **fields: Any,
    ) -> None:
        self.broker, self.kind = broker, kind
        self.where: dict[str, Any] = {"topic": topic, "partition": partition, "subscription": name}
        self.answer = self.ask(Subscribe(**self.where, subscription_type=kind, begin=begin, **fields))

    def ask(self, command: Command) -> object:
        return ask(self.broker, command)

    def acknowledge(self, *runs: tuple[int, int], before: int | None = None, transaction: int | None = None) -> object:
        return self.ask(
            Acknowledge(
                **self.where,
                runs=tuple((Offset(first), Offset(last)) for first, last in runs),
                before=None if before is None else Offset(before),
                transaction=None if transaction is None else TransactionId(transaction),
            )
        )

    def connect(self, number: int, *, name: str = "", permits: int = 0) -> None:
        """Connect a consumer that is pushed entries, and throws them away."""
        consumer_id = ConsumerId(number)
        self.broker.on_loop(lambda: self.broker.engine.dispatcher.register(consumer_id, lambda sent: None))
        self.ask(Connect(**self.where, consumer_id=consumer_id, subscription_type=self.kind, name=name))
        if permits:
            self.ask(Permit(**self.where, consumer_id=consumer_id, permits=permits))

    def redeliver(self, number: int) -> object:
        return self.ask(Redeliver(**self.where, consumer_id=ConsumerId(number)))

    def seek(self, offset: int) -> object:
        return self.ask(Seek(**self.where, to=Offset(offset)))

    def delete(self) -> object:
        return self.ask(Unsubscribe(**self.where))


def ask(broker: Front, command: Command) -> object:
    """Submit one command on the broker's loop; return its answer."""
    answers: list[object] = []
    answered = threading.Event()

    def done(found: list[Any]) -> None:
        answers.extend(found)
        answered.set()

    broker.on_loop(lambda: broker.engine.submit((command,), done))
    assert answered.wait(ANSWER_SECONDS)
    return answers[0]
