"""Timers: commands that the core asks to be sent later."""

from collections.abc import Callable, Iterable

from exacta.core.commands import (
    Command,
    EndDelays,
    ExpireConsumer,
    ExpireMember,
    ExpireRebalance,
    ExpireRevocation,
    ExpireTransaction,
    ForgetIdleSubscription,
)
from exacta.core.events import (
    ConsumerGroupUpdated,
    Event,
    GroupDeleted,
    MembershipChanged,
    NonDurableSubscriptionDeleted,
    SubscriptionDeleted,
    TopicDeleted,
    TransactionEnded,
)
from exacta.core.outcome import Timer
from exacta.core.state.classic_membership import NOBODY
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.engine.deadlines import Deadline, Deadlines

ENDINGS = frozenset(
    {
        ConsumerGroupUpdated,
        GroupDeleted,
        MembershipChanged,
        NonDurableSubscriptionDeleted,
        SubscriptionDeleted,
        TopicDeleted,
        TransactionEnded,
    }
)
"""The events after which there is no more to be sent for what they end."""


class Timers:
    """Sends each command once its time has come. Of equal commands only the earliest is kept: it asks for more then."""

    def __init__(self, deadlines: Deadlines, send: Callable[[Command], object]) -> None:
        self._deadlines = deadlines
        self._send = send
        self._deadline_of: dict[Command, Deadline] = {}

    def __len__(self) -> int:
        return len(self._deadline_of)

    def __contains__(self, command: Command) -> bool:
        return command in self._deadline_of

    def set(self, timer: Timer) -> None:
        """Send the timer's command at its time, unless an equal one will be sent earlier already."""
        command, at_ms = timer.command, timer.at_ms
        known = self._deadline_of.get(command)
        if known is not None:
            if known.at_ms <= at_ms:
                return
            self._deadlines.cancel(known)
        self._deadline_of[command] = self._deadlines.add(at_ms, lambda: self._fire(command))

    def drop(self, command: Command) -> None:
        """Do not send the command any more, if it was to be sent."""
        known = self._deadline_of.pop(command, None)
        if known is not None:
            self._deadlines.cancel(known)

    def drop_ended(self, event: Event, state: State) -> None:
        """Forget the commands for what an event of `ENDINGS` ends, before it is applied to the state."""
        if type(event) is TransactionEnded:
            self.drop(ExpireTransaction(transaction_id=event.transaction_id))
        elif type(event) is TopicDeleted:
            for partition_id in state.topics[event.topic].partition_ids:
                self.drop_subscriptions(state.partitions[partition_id], state.subscription_names(partition_id))
        elif isinstance(event, SubscriptionDeleted):
            self.drop_subscriptions(state.partitions[event.partition_id], (event.name,))
        elif isinstance(event, MembershipChanged):
            self._drop_members(event, state)
        elif isinstance(event, ConsumerGroupUpdated):
            for member_id in event.gone:
                self.drop(ExpireConsumer(group_id=event.group_id, member_id=member_id))
                self.drop(ExpireRevocation(group_id=event.group_id, member_id=member_id))
        elif isinstance(event, GroupDeleted):
            self.drop(ExpireRebalance(group_id=event.group_id))

    def _drop_members(self, event: MembershipChanged, state: State) -> None:
        """Forget the timers of members that leave, and of ids that were given out: a session may be long."""
        before, now = state.volatile.memberships.get(event.group_id, NOBODY), event.membership
        if before.members is now.members and before.pending is now.pending:
            return
        there = before.members.keys() | before.pending
        for member_id in there - now.members.keys() - now.pending:
            self.drop(ExpireMember(group_id=event.group_id, member_id=member_id))

    def drop_subscriptions(self, partition: Partition, names: Iterable[str]) -> None:
        """Forget the timers of subscriptions that are deleted: a delay may be long, and readers come and go."""
        for name in names:
            for kind in (ForgetIdleSubscription, EndDelays):
                self.drop(kind(topic=partition.topic, partition=partition.index, subscription=name))

    def _fire(self, command: Command) -> None:
        del self._deadline_of[command]
        self._send(command)
