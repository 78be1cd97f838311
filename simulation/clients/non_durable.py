"""A reader's program: one non-durable subscription after another, which only this program uses.

It has one consumer at a time, and knows when its next subscription must be new: it has disconnected its consumer. Half
of the readers read uncommitted messages.
"""

from typing import Any

from exacta.core.commands import Acknowledge, AcknowledgeSoon, Command, Connect, Disconnect, Permit, Seek, Subscribe
from exacta.core.commands.subscriptions import EARLIEST, LATEST
from exacta.core.ids import ConsumerId, Offset
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Delivering, Subscribed
from exacta.core.values.subscriptions import IN_ORDER, IsolationLevel, SubscriptionType
from exacta.ports.log import Sent
from simulation.clients.batches import pushed_values
from simulation.clients.connection import Disconnected
from simulation.clients.surroundings import Surroundings
from simulation.history import Place

GONE = (Rejection.CONSUMER_NOT_FOUND, Rejection.SUBSCRIPTION_NOT_FOUND)


class _Reader:
    """One instance's subscription, as long as there is one."""

    def __init__(self, here: Surroundings, place: Place) -> None:
        self._here = here
        self._where: dict[str, Any] = {"topic": place[0], "partition": place[1], "subscription": here.writer}
        self._place = place
        self._type = here.chance.choice(list(SubscriptionType))
        self._level = here.chance.choice(list(IsolationLevel))
        is_committed = self._level is IsolationLevel.READ_COMMITTED
        self._pushed = here.history.pushed if is_committed else here.history.pushed_uncommitted
        self._consumer: ConsumerId | None = None
        """The consumer that is connected, or may be."""
        self._is_connected = False
        """True if it is connected for sure: a move that got no answer may have disconnected it."""
        self._is_gone = True
        """True if there can be no subscription any more."""
        self._sent: list[Delivering] = []

    async def act(self) -> None:
        """Subscribe where there is no consumer; otherwise read, acknowledge, seek or leave."""
        dice = self._here.chance.random()
        if self._consumer is None:
            await self._subscribe()
        elif dice < 0.4:
            permits = self._here.chance.choice([1, 3, 20])
            await self._ask(Permit(**self._where, consumer_id=self._consumer, permits=permits))
        elif dice < 0.7:
            await self._acknowledge()
        elif dice < 0.85:
            to = self._here.chance.choice([EARLIEST, LATEST, Offset(0)])
            self._is_connected = False
            if await self._ask(Seek(**self._where, to=to)) == DONE:
                self._forget_consumer()
        elif await self._ask(Disconnect(**self._where, consumer_id=self._consumer)) == DONE:
            self._is_gone = self._is_connected
            self._forget_consumer()

    async def _subscribe(self) -> None:
        here = self._here
        begin = here.chance.choice([EARLIEST, LATEST, Offset(here.chance.randrange(99))])
        kind: dict[str, Any] = {"subscription_type": self._type, "durable": False, "isolation_level": self._level}
        command = Subscribe(**self._where, begin=begin, **kind)
        was_gone, self._is_gone = self._is_gone, False
        answer = await here.calls.ask(command)
        if not isinstance(answer, Subscribed):
            here.history.refusals.append(f"refused: {here.writer} subscribes: {answer}")
            return
        if was_gone and not answer.is_new:
            here.history.refusals.append(f"survives: the subscription of {here.writer} is still there")
        here.history.consumers += 1
        consumer = ConsumerId(here.history.consumers)
        if not here.calls.receive(consumer, self._receive):
            return
        self._consumer = consumer
        answer = await self._ask(Connect(**self._where, consumer_id=consumer, **kind))
        self._is_connected = answer == DONE
        if answer != DONE and answer not in GONE:
            here.history.refusals.append(f"refused: {here.writer} connects: {answer}")

    def _receive(self, sent: list[Sent], early: list[Offset]) -> None:
        if early and self._type not in IN_ORDER:
            self._here.history.refusals.append(f"early: {early} pushed to {self._here.writer}")
        for each in sent:
            self._sent.append(each.entry)
            free = {message for first, last in each.entry.free for message in range(first, last + 1)}
            for offset, value in pushed_values(each.batch):
                if offset in free:
                    self._pushed.append((self._here.writer, self._place, offset, value))

    async def _acknowledge(self) -> None:
        if not self._sent:
            return
        entry = self._sent.pop()
        kind = self._here.chance.choice([Acknowledge, AcknowledgeSoon])
        if self._here.chance.random() < 0.5:
            command = kind(**self._where, runs=entry.free)
        else:
            command = kind(**self._where, before=Offset(entry.base + entry.count))
        answer = await self._ask(command)
        if answer != DONE and answer not in GONE:
            self._here.history.refusals.append(f"refused: {self._here.writer} acknowledges: {answer}")

    async def _ask(self, command: Command) -> Any:
        answer = await self._here.calls.ask(command)
        if answer in GONE:
            self._forget_consumer()
        return answer

    def _forget_consumer(self) -> None:
        self._consumer = None
        self._is_connected = False
        self._sent.clear()


async def non_durable(here: Surroundings) -> bool:
    """Read until the world is over."""
    reader = _Reader(here, here.chance.choice(here.places))
    while not here.is_over():
        await here.think(0.7)
        try:
            await reader.act()
        except Disconnected:
            continue  # nobody knows what became of it
    return False
