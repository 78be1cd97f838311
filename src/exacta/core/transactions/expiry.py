"""Expiry: time ends transactions, and forgets idle transactional ids and idle producers of partitions.

Timers bring the commands; each looks again whether it still applies. A transaction's timer is set when it begins, and
the engine drops it with the transaction's end. Idle ones are looked for at intervals.

Nobody is looked at twice in vain: the state keeps transactional ids in the order in which they were heard of last, and
each partition's producers likewise, so that who has been idle for too long stands in front. An open transaction keeps
its id, and its producer in the partitions that it has written to. While the table of producers is more than half full,
those are idle that may not repeat their last batch any more (`Limits.producer_protected_ms`).
"""

from collections.abc import Iterator
from itertools import islice, takewhile

from exacta.core.commands import (
    ExpireConsumer,
    ExpireGroups,
    ExpireMember,
    ExpireProducers,
    ExpireRevocation,
    ExpireTransaction,
    ExpireTransactionalIds,
)
from exacta.core.events import Event, ProducersExpired, TransactionalIdsExpired, WritersExpired
from exacta.core.groups.consumer.step import session_timeout_ms
from exacta.core.ids import Cause, PartitionId, ProducerId, WriterId
from exacta.core.outcome import Outcome, Timer
from exacta.core.replies import DONE
from exacta.core.state.consumer_membership import MemberPhase
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.state.writer import KnownWriter
from exacta.core.transactions.binding import aborted_and_fenced
from exacta.core.transactions.transaction import time_out
from exacta.core.values.usage import Table


def latest_noted_ms(state: State) -> int:
    """Return the latest time that the state has noted of a transaction or a producer; 0 if it knows of none.

    The time that decides begins there at the earliest: if the clock was set back between two lives, nothing that was
    given so much time gets more.
    """
    held = max((each.last_update_ms for each in state.transactional_ids.values()), default=0)
    begun = max((each.start_ms for each in state.transactions.values()), default=0)
    ended = max((each.ended_ms for each in state.ended_handles.values()), default=0)
    # The producers of a partition are in the order of their last batches.
    last = (next(reversed(each.producers.values())) for each in state.partitions.values() if each.producers)
    named = (writer.last_append_ms for writer in reversed(state.writers.values()))
    return max(0, held, begun, ended, next(named, 0), max((known.last_append_ms for known in last), default=0))


def timers_after_recovery(state: State, now_ms: int) -> list[Timer]:
    """Return the timers of open transactions, of members, whose sessions begin again, and of what is idle."""
    deadlines = ((each.transaction_id, each.deadline_ms) for each in state.transactions.values())
    timers = [time_out(each, deadline_ms) for each, deadline_ms in deadlines if deadline_ms is not None]
    limits = state.limits
    return [
        *timers,
        *_sessions(state, now_ms),
        Timer(now_ms + limits.transactional_id_expiry_interval_ms, ExpireTransactionalIds()),
        Timer(now_ms + limits.producer_id_expiry_interval_ms, ExpireProducers()),
        Timer(now_ms + limits.group_expiry_interval_ms, ExpireGroups(begun_ms=now_ms)),
    ]


def _sessions(state: State, now_ms: int) -> Iterator[Timer]:
    for group_id, membership in state.volatile.memberships.items():
        for key, member in membership.members.items():
            yield Timer(now_ms + member.session_timeout_ms, ExpireMember(group_id=group_id, member_id=key))
    for group_id, group in state.volatile.consumer_groups.items():
        for key, consumer in group.members.items():
            session_ms = session_timeout_ms(state, consumer)
            yield Timer(now_ms + session_ms, ExpireConsumer(group_id=group_id, member_id=key))
            if consumer.phase is MemberPhase.UNREVOKED and consumer.classic is None:
                revocation = ExpireRevocation(group_id=group_id, member_id=key)
                yield Timer(now_ms + consumer.rebalance_timeout_ms, revocation)


def expire_transaction(state: State, command: ExpireTransaction, now_ms: int) -> Outcome:
    """Abort a transaction whose time is up, and fence its producer, if it has one, by a bumped epoch."""
    transaction = state.transactions.get(command.transaction_id)
    deadline_ms = None if transaction is None else transaction.deadline_ms
    if transaction is None or deadline_ms is None:
        return Outcome(reply=DONE)
    if now_ms < deadline_ms and not command.early:  # the clock went back
        return Outcome(reply=DONE, timers=(time_out(transaction.transaction_id, deadline_ms),))
    return Outcome(events=aborted_and_fenced(state, transaction, cause=Cause.TIME_OUT, now_ms=now_ms), reply=DONE)


def expire_transactional_ids(state: State, command: ExpireTransactionalIds, now_ms: int) -> Outcome:
    """Forget the transactional ids that nobody has used for too long."""
    limits = state.limits
    found = tuple(islice(_idle_ids(state, now_ms - limits.transactional_id_expiration_ms), limits.max_expired_at_once))
    events = (TransactionalIdsExpired(transactional_ids=found, at_ms=now_ms),) if found else ()
    interval_ms = limits.transactional_id_expiry_interval_ms
    return Outcome(events=events, reply=DONE, timers=(_again(state, command, len(found), now_ms, interval_ms),))


def expire_producers(state: State, command: ExpireProducers, now_ms: int) -> Outcome:
    """Let partitions forget the producers of which nothing has come for too long, and forget idle named writers."""
    limits = state.limits
    most, usage = limits.max_expired_at_once, state.volatile.usage
    since_ms = now_ms - limits.producer_id_expiration_ms
    is_pressed = usage[Table.PRODUCERS].total > limits.max_producer_bytes // 2
    idle_ms = limits.producer_protected_ms if is_pressed else limits.producer_id_expiration_ms
    producers = tuple(islice(_idle_producers(state, now_ms - idle_ms), most))
    idle = takewhile(lambda writer: writer.last_append_ms <= since_ms, state.writers.values())
    writers = tuple(_at_most(idle, most))
    events: list[Event] = []
    if producers:
        events.append(ProducersExpired(producers=producers))
    if writers:
        events.append(WritersExpired(writer_ids=writers))
    found = most if next(idle, None) is not None else len(producers)
    interval_ms = limits.producer_id_expiry_interval_ms
    return Outcome(events=tuple(events), reply=DONE, timers=(_again(state, command, found, now_ms, interval_ms),))


def _again(
    state: State, command: ExpireTransactionalIds | ExpireProducers, found: int, now_ms: int, interval_ms: int
) -> Timer:
    """Return the timer of the next look: at once, but after those that wait, where this one found all it could take."""
    return Timer(now_ms if found == state.limits.max_expired_at_once else now_ms + interval_ms, command)


def _at_most(idle: Iterator[KnownWriter], most: int) -> Iterator[WriterId]:
    """Yield the first writers until they have about this many sequences in all partitions."""
    for writer in idle:
        yield writer.writer_id
        most -= 1 + len(writer.partitions)
        if most <= 0:
            return


def _idle_ids(state: State, since_ms: int) -> Iterator[str]:
    for held in state.transactional_ids.values():
        if held.open is not None:
            continue
        if held.last_update_ms > since_ms:
            return
        yield held.transactional_id


def _idle_producers(state: State, since_ms: int) -> Iterator[tuple[PartitionId, ProducerId]]:
    for partition in state.partitions.values():
        for producer_id in _idle_in(partition, since_ms):
            yield partition.partition_id, producer_id


def _idle_in(partition: Partition, since_ms: int) -> Iterator[ProducerId]:
    for producer_id, known in partition.producers.items():
        if partition.has_open(producer_id):
            continue
        if known.last_append_ms > since_ms:
            return
        yield producer_id
