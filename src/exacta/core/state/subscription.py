"""A Pulsar subscription on one partition: which messages are acknowledged, and which wait for transactions.

Messages are named by their offsets. A message is *acknowledged* if it lies before the position or in one of the
acknowledged runs. It is *pending* if an open transaction has acknowledged it: alone, or with all messages before it.
What a seek has skipped is both, until the transaction ends: a seek back finds it pending again.
"""

from typing import ClassVar

from msgspec import Struct, field

from exacta.core.ids import NO_PRINCIPAL, Offset, PrincipalName, TransactionId
from exacta.core.state.redeliveries import RedeliveryCount, forget_done
from exacta.core.values.runs import Run, add, missing, overlaps, runs_between, subtract
from exacta.core.values.subscriptions import IsolationLevel, SubscriptionType


class CumulativePending(Struct, frozen=True, array_like=True):
    """A transaction has acknowledged every message before an offset that was not acknowledged then."""

    transaction_id: TransactionId
    before: Offset


class Subscription(Struct, array_like=True):
    """A durable subscription; its position never lies before the start of the log."""

    is_durable: ClassVar[bool] = True
    name: str
    position: Offset
    subscription_type: SubscriptionType
    """The type that its last consumer had asked for."""
    properties: dict[str, str]
    created_ms: int
    acknowledged: list[Run] = field(default_factory=list)
    """The messages from the position on that are acknowledged. The message at the position is not."""
    pending: dict[TransactionId, list[Run]] = field(default_factory=dict)
    """The messages that transactions have acknowledged one by one; a message is in one of these at most."""
    cumulative: CumulativePending | None = None
    """The acknowledgement of all messages before an offset that waits for its transaction. There is one at most."""
    principal: PrincipalName = NO_PRINCIPAL
    """The principal of the client that made it."""
    redelivered: list[RedeliveryCount] = field(default_factory=list)
    """The redelivery counts that acknowledgements have written, in the order of the entries; none is acknowledged."""

    def acknowledge(self, runs: tuple[Run, ...] | list[Run], before: Offset) -> None:
        """Acknowledge what is left of these messages, and of all before an offset, whatever was pending of it."""
        for first, last in runs:
            if last >= self.position:
                first = max(first, self.position)
                add(self.acknowledged, first, last)
                self._let_go(first, last)
        self.move(before)
        if self.redelivered:
            forget_done(self.redelivered, runs, self.acknowledged, self.position)

    def move(self, before: Offset) -> None:
        """Let no message before this offset be left, and bring the position to the first that is not acknowledged."""
        position = max(self.position, before)
        subtract(self.acknowledged, Offset(0), Offset(position - 1))
        if self.acknowledged and self.acknowledged[0][0] == position:
            position = Offset(self.acknowledged.pop(0)[1] + 1)
        if position > self.position:
            self._let_go(self.position, Offset(position - 1))
            if self.cumulative is not None and self.position < self.cumulative.before <= position:
                self.cumulative = None
            self.position = position
            if self.redelivered:
                forget_done(self.redelivered, (), self.acknowledged, self.position)

    def seek(self, position: Offset) -> None:
        """Forget which messages from the position on are acknowledged; what is pending stays pending, on both sides."""
        self.position = position
        self.acknowledged.clear()
        self.redelivered.clear()

    def hold(self, transaction_id: TransactionId, runs: tuple[Run, ...], before: Offset) -> None:
        """Let an open transaction have acknowledged these messages, or all before an offset."""
        for first, last in runs:
            add(self.pending.setdefault(transaction_id, []), first, last)
        if before > self.position:
            self.cumulative = CumulativePending(transaction_id, before)

    def end(self, transaction_id: TransactionId, *, commit: bool) -> tuple[list[Run], Offset]:
        """Acknowledge what a transaction has acknowledged, or give it back; return what of it no seek has skipped."""
        held = self.pending.pop(transaction_id, [])
        subtract(held, Offset(0), Offset(self.position - 1))
        before = Offset(0)
        if self.cumulative is not None and self.cumulative.transaction_id == transaction_id:
            before = self.cumulative.before if self.cumulative.before > self.position else before
            self.cumulative = None
        if commit:
            self.acknowledge(held, before)
        return held, before

    def is_acknowledged(self, first: Offset, last: Offset) -> bool:
        """Return whether one of these messages is acknowledged."""
        return first < self.position or overlaps(self.acknowledged, first, last)

    def unacknowledged(self, first: Offset, last: Offset) -> list[Run]:
        """Return those of these messages that are not acknowledged; they may be pending."""
        return [] if last < self.position else missing(self.acknowledged, max(first, self.position), last)

    def free(self, first: Offset, last: Offset) -> list[Run]:
        """Return those of these messages that are neither acknowledged nor pending."""
        left = self.unacknowledged(first, last)
        if self.cumulative is not None:
            subtract(left, Offset(0), Offset(self.cumulative.before - 1))
        for runs in self.pending.values():
            if not left:
                break
            for pending_first, pending_last in runs_between(runs, first, last):
                subtract(left, pending_first, pending_last)
        return left

    @property
    def withholds(self) -> bool:
        """Return whether a message is pending that is not acknowledged: no seek has skipped it."""
        if self.cumulative is not None and self.cumulative.before > self.position:
            return True
        return any(runs[-1][1] >= self.position for runs in self.pending.values())

    def pending_in(self, first: Offset, last: Offset) -> TransactionId | None:
        """Return a transaction in which one of these messages is pending; None: there is none."""
        if self.cumulative is not None and first < self.cumulative.before:
            return self.cumulative.transaction_id
        return next((key for key, runs in self.pending.items() if overlaps(runs, first, last)), None)

    def pending_of(self, transaction_id: TransactionId) -> tuple[list[Run], Offset]:
        """Return what a transaction has acknowledged: runs, and the offset before which it is everything; 0: none."""
        is_cumulative = self.cumulative is not None and self.cumulative.transaction_id == transaction_id
        before = self.cumulative.before if self.cumulative is not None and is_cumulative else Offset(0)
        return self.pending.get(transaction_id, []), before

    def _let_go(self, first: Offset, last: Offset) -> None:
        for transaction_id, runs in list(self.pending.items()):
            subtract(runs, first, last)
            if not runs:
                del self.pending[transaction_id]


class NonDurableSubscription(Subscription, array_like=True):
    """A subscription that neither journal nor snapshot holds, as Pulsar's readers have them.

    It is gone with its last consumer, and with a restart. No transaction acknowledges its messages.
    """

    is_durable: ClassVar[bool] = False
    idle_since_ms: int | None = None
    """The time since when it waits for a consumer: it is new, or was moved. None: it has consumers."""
    isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED
