"""The invariant of principals (decision 0059); `invariants.py` says how such functions are made."""

from collections.abc import Iterator

from exacta.core.events import (
    ConsumerGroupUpdated,
    GroupSettled,
    ProducerBound,
    SubscriptionCreated,
    TransactionBegun,
    WriterNamed,
)
from exacta.core.ids import Cause
from exacta.core.state.state import State
from simulation.invariants.log import Log

Owner = tuple[str, object]
"""A kind of thing, and what names it."""


def principals_are_those_that_began(state: State, log: Log) -> Iterator[str]:
    """Each thing has the principal of the client that began it, also after others have touched it."""
    began = _began(log)
    for owner, found in _found(state):
        if found != began.get(owner):
            yield f"principals: {owner} is of {found!r}, and was begun by {began.get(owner)!r}"


def _began(log: Log) -> dict[Owner, str]:
    began: dict[Owner, str] = {}
    for event in log:
        match event:
            case ProducerBound(cause=Cause.OWNER | Cause.NEW_INSTANCE):
                began["transactional id", event.transactional_id] = event.principal
            case TransactionBegun():
                began["transaction", event.transaction_id] = event.principal
            case WriterNamed():
                began["writer", event.writer_id] = event.principal
            case SubscriptionCreated(durable=True):
                began["subscription", (event.partition_id, event.name)] = event.principal
            case GroupSettled(membership=None):
                pass
            case GroupSettled():
                assert event.membership is not None
                for member in event.membership.members.values():
                    began["member", (event.group_id, member.member_id)] = member.principal
            case ConsumerGroupUpdated():
                for each in event.members:
                    began["member", (event.group_id, each.member_id)] = each.principal
            case _:
                pass
    return began


def _found(state: State) -> Iterator[tuple[Owner, str]]:
    for held in state.transactional_ids.values():
        yield ("transactional id", held.transactional_id), held.principal
    for transaction in state.transactions.values():
        yield ("transaction", transaction.transaction_id), transaction.principal
    for writer in state.writers.values():
        yield ("writer", writer.writer_id), writer.principal
    for partition in state.partitions.values():
        for name, subscription in partition.subscriptions.items():
            yield ("subscription", (partition.partition_id, name)), subscription.principal
    for group_id, membership in state.settled.items():
        for member in membership.members.values():
            yield ("member", (group_id, member.member_id)), member.principal
    for group_id, group in state.settled_consumers.items():
        for each in group.members.values():
            yield ("member", (group_id, each.member_id)), each.principal
