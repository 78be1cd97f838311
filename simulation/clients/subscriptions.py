"""A program of acknowledgements: plain ones and those of transactions, on subscriptions that nobody else uses.

It names messages by their offsets, those that it was sent and others. It remembers of each message what it was told: a
message that was acknowledged, plainly or by a transaction that was committed, is acknowledged for ever, over all
crashes: no consumer that connects afterwards gets it. Nothing is remembered of what nobody answered.
"""

from typing import Any

from exacta.core.commands import (
    Acknowledge,
    AcknowledgeSoon,
    BeginTransaction,
    Connect,
    Disconnect,
    EndHandle,
    Permit,
    Redeliver,
    Subscribe,
)
from exacta.core.commands.subscriptions import EARLIEST
from exacta.core.ids import ConsumerId, Offset, TransactionId
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Subscribed, TransactionBegunReply
from exacta.core.subscriptions.keys import HASHES
from exacta.core.values.runs import Run
from exacta.core.values.subscriptions import IN_ORDER, KeyShared, KeySharedMode, SubscriptionType
from exacta.ports.log import Sent
from simulation.clients.batches import pushed_values
from simulation.clients.connection import Disconnected
from simulation.clients.surroundings import Surroundings
from simulation.history import Place

SEEN_AT_ONCE = 8
"""The first offsets that a program tries; it tries more where it is told that they exist."""
ABANDONED = 0.15
COMMITTED = 0.65
"""The shares of transactions that nobody ends, and that are committed; the others are aborted."""
HALVES = ((0, 29_999), (30_000, HASHES - 1))
"""The parts of the hashes of keys that consumers name."""
LATE = (
    Rejection.INVALID_TRANSACTION_STATE,
    Rejection.TRANSACTION_ENDED,
    Rejection.TRANSACTION_NOT_FOUND,
)
NOT_NOW = (
    Rejection.TRANSACTION_CONFLICT,
    Rejection.OFFSET_OUT_OF_RANGE,
    Rejection.CONSUMER_NOT_FOUND,
    *LATE,
)


Held = tuple[TransactionId | None, frozenset[int]]
"""An open transaction, and the messages that it has acknowledged."""


class _Subscription:
    """One instance's subscription, and what was promised of it."""

    def __init__(self, here: Surroundings, place: Place) -> None:
        self._here = here
        self._where: dict[str, Any] = {"topic": place[0], "partition": place[1], "subscription": here.writer}
        self._place = place
        self._type = here.chance.choice(list(SubscriptionType))
        self._sticky = here.chance.random() < 0.3
        """True if each consumer names the hashes that it wants: the even one one half, the odd one the other."""
        self._out_of_order = here.chance.random() < 0.3
        self._acknowledged: set[int] = set()
        self._seen = SEEN_AT_ONCE
        self._consumers: list[ConsumerId] = []
        self._may_have_others = False
        """True if a consumer may be connected that is not among these, because an answer was lost."""
        self._open: TransactionId | None = None
        self._held: set[int] = set()
        """The messages that the open transaction has acknowledged, as far as that was answered."""
        self._got: list[tuple[Held, int]] = []
        """The messages that were pushed, and what was held when their consumer connected."""

    async def begin(self) -> bool:
        command = Subscribe(**self._where, subscription_type=self._type, begin=EARLIEST)
        return isinstance(await self._here.calls.until_answered(command), Subscribed)

    async def take_some(self) -> None:
        """Take some messages more, as a consumer that connects where there is none; or give back what it has."""
        here, chance = self._here, self._here.chance
        if not self._consumers or (len(self._consumers) == 1 and chance.random() < 0.2):
            await self._connect()
            return
        consumer = chance.choice(self._consumers)
        dice = chance.random()
        if dice < 0.1:
            await here.calls.ask(Redeliver(**self._where, consumer_id=consumer))
        elif dice < 0.2:
            self._consumers.remove(consumer)
            others, self._may_have_others = self._may_have_others, True
            await here.calls.ask(Disconnect(**self._where, consumer_id=consumer))
            self._may_have_others = others
        else:
            permits = chance.choice([1, 3, 20])
            answer = await here.calls.ask(Permit(**self._where, consumer_id=consumer, permits=permits))
            if answer == Rejection.CONSUMER_NOT_FOUND:
                # The broker has begun another life. Only who has connected since may be there.
                del self._consumers[: self._consumers.index(consumer) + 1]
                self._may_have_others = self._may_have_others and bool(self._consumers)

    async def _connect(self) -> None:
        """Connect under a new id; where nobody answers, the one before may be there still, and is alone."""
        here = self._here
        here.history.consumers += 1
        consumer = ConsumerId(here.history.consumers)
        known, held = frozenset(self._acknowledged), (self._open, frozenset(self._held))
        if not here.calls.receive(consumer, lambda sent, early: self._receive(known, held, sent, early)):
            return
        command = Connect(
            **self._where,
            consumer_id=consumer,
            subscription_type=self._type,
            key_shared=self._key_shared(HALVES[consumer % 2]),
        )
        others, self._may_have_others = self._may_have_others, True
        answer = await here.calls.ask(command)
        self._may_have_others = others
        if answer == DONE:
            self._consumers.append(consumer)
        elif answer not in (Rejection.SUBSCRIPTION_BUSY, Rejection.KEY_RANGES_REFUSED):
            here.history.refusals.append(f"refused: {here.writer} connects: {answer}")

    def _key_shared(self, half: tuple[int, int]) -> KeyShared:
        if self._sticky:
            return KeyShared(KeySharedMode.STICKY, (half,), self._out_of_order)
        return KeyShared(out_of_order=self._out_of_order)

    def _receive(self, known: frozenset[int], held: Held, sent: list[Sent], early: list[Offset]) -> None:
        """Look at what was pushed.

        `known` are the messages that were acknowledged when the consumer connected, `held` those that the open
        transaction had.
        """
        here = self._here
        if early and self._type not in IN_ORDER:
            here.history.refusals.append(f"early: {early} pushed to {here.writer}")
        for each in sent:
            free = _messages(each.entry.free)
            self._got += ((held, message) for message in free)
            if free & known:
                here.history.refusals.append(f"acknowledged again: {sorted(free & known)} pushed to {here.writer}")
            for offset, value in pushed_values(each.batch):
                if offset in free:
                    here.history.pushed.append((here.writer, self._place, offset, value))

    async def acknowledge(self) -> None:
        """Acknowledge one by one, or all before an offset, with an answer or without."""
        here, chance = self._here, self._here.chance
        if chance.random() < 0.2:
            before = Offset(chance.randrange(self._seen))
            answer = await here.calls.ask(Acknowledge(**self._where, before=before))
            self._note(answer, set(range(before)), "all before an offset")
            return
        runs = self._some_runs()
        if chance.random() < 0.2:
            await here.calls.ask(AcknowledgeSoon(**self._where, runs=runs))
            return
        answer = await here.calls.ask(Acknowledge(**self._where, runs=runs))
        self._note(answer, _messages(runs), "one by one")

    async def acknowledge_in_transaction(self) -> None:
        """Acknowledge in a transaction, plainly meanwhile, and then end the transaction, or leave it alone."""
        here, chance = self._here, self._here.chance
        begun = await here.calls.ask(BeginTransaction(timeout_ms=here.timeout_ms, client_id=here.name))
        if not isinstance(begun, TransactionBegunReply):
            return
        here.history.given_out("transaction", begun.transaction_id)
        here.history.given_out("producer", begun.producer_id)
        self._open, self._held = begun.transaction_id, set()
        held = self._held
        self._got.clear()
        for _ in range(chance.randint(1, 3)):
            held |= await self._put_in(begun.transaction_id)
            if chance.random() < 0.2:
                await self.acknowledge()
            for _ in range(chance.choice([0, 0, 3])):
                await self.take_some()
        self._open, self._held = None, set()
        if chance.random() < ABANDONED:
            return
        commit = chance.random() < COMMITTED
        answer = await here.calls.until_answered(EndHandle(transaction_id=begun.transaction_id, commit=commit))
        if answer == DONE and commit:
            self._acknowledged |= held
            if taken := {
                message for before, message in self._got if before[0] == begun.transaction_id and message in before[1]
            }:
                here.history.refusals.append(f"pending and delivered: {sorted(taken)} of {here.writer}")
        elif answer != DONE and answer not in LATE:
            here.history.refusals.append(f"refused: the end of {here.writer}'s {begun.transaction_id}: {answer}")

    async def _put_in(self, transaction_id: TransactionId) -> set[int]:
        """Return the messages that the transaction has from now on; none of them was acknowledged before."""
        here, chance = self._here, self._here.chance
        before = Offset(chance.randint(1, self._seen)) if chance.random() < 0.2 else None
        runs = () if before is not None else self._some_runs()
        stands_by = await self._one_standing_by() if before is not None else None
        answer = await here.calls.ask(
            Acknowledge(
                **self._where,
                runs=runs,
                before=before,
                transaction=transaction_id,
                consumer_id=stands_by,
            )
        )
        if answer == DONE and stands_by is not None:
            here.history.refusals.append(f"overtaken: a consumer of {here.writer} that is not active acknowledges")
        named = set(range(before)) if before is not None else _messages(runs)
        again = named & self._acknowledged
        if answer == DONE and before is None and again:
            here.history.refusals.append(f"acknowledged again: {sorted(again)} of {here.writer} in a transaction")
        if answer != DONE and answer not in NOT_NOW:
            here.history.refusals.append(f"refused: {here.writer} in {transaction_id}: {answer}")
        return named if answer == DONE else set()

    async def _one_standing_by(self) -> ConsumerId | None:
        """Return the consumer that only waits, of two in a Failover subscription; the other one is still there."""
        if self._type is not SubscriptionType.FAILOVER or len(self._consumers) < 2 or self._may_have_others:
            return None
        active = self._place[1] % 2  # the partitions have their active consumers in turn
        permit = Permit(**self._where, consumer_id=self._consumers[active], permits=1)
        answer: object = await self._here.calls.ask(permit)
        return self._consumers[1 - active] if answer == DONE else None

    def _some_runs(self) -> tuple[Run, ...]:
        chance = self._here.chance
        firsts = chance.sample(range(self._seen), chance.randint(1, 3))
        return tuple((Offset(first), Offset(first + chance.choice([0, 0, 2]))) for first in firsts)

    def _note(self, answer: object, named: set[int], how: str) -> None:
        if answer == DONE:
            self._acknowledged |= named
            if max(named, default=0) > self._seen // 2:
                self._seen += SEEN_AT_ONCE
        elif answer not in (Rejection.OFFSET_OUT_OF_RANGE, Rejection.LIMIT_REACHED):
            self._here.history.refusals.append(f"refused: {self._here.writer}, {how}: {answer}")


def _messages(runs: tuple[Run, ...]) -> set[int]:
    return {message for first, last in runs for message in range(first, last + 1)}


async def subscriptions(here: Surroundings) -> bool:
    """Acknowledge until the world is over."""
    subscription = _Subscription(here, here.chance.choice(here.places))
    if not await subscription.begin():
        here.history.refusals.append(f"refused: {here.writer} subscribes")
        return False
    while not here.is_over():
        await here.think(0.7)
        try:
            if here.chance.random() < 0.4:
                await subscription.take_some()
            elif here.chance.random() < 0.5:
                await subscription.acknowledge()
            else:
                await subscription.acknowledge_in_transaction()
        except Disconnected:
            continue  # nobody knows what became of it
    return False
