"""The invariants of groups: their offsets, members and epochs; `invariants.py` says how such functions are made."""

from collections.abc import Iterable, Iterator, Mapping, Set

from msgspec.structs import replace

from exacta.core.commands import OffsetToCommit
from exacta.core.events import (
    ConsumerGroupUpdated,
    Event,
    GroupDeleted,
    GroupEpochsReserved,
    GroupSettled,
    OffsetsCommitted,
    OffsetsDeleted,
    TopicCreated,
    TopicDeleted,
    TransactionalOffsetsCommitted,
    TransactionEnded,
)
from exacta.core.groups.consumer_updates import updated
from exacta.core.groups.consumer_words import read_assignment
from exacta.core.groups.expiry import KEPT_METADATA
from exacta.core.ids import TransactionId
from exacta.core.state.classic_membership import Membership, settled
from exacta.core.state.consumer_membership import ConsumerGroup
from exacta.core.state.state import State
from exacta.core.values.classic_groups import Phase
from exacta.core.values.consumer_groups import TopicPartition
from simulation.invariants.log import Log


def group_offsets_have_taken_effect(state: State, log: Log) -> Iterator[str]:
    """Invariant 3, for groups: of the offsets that took effect, a group has the one that was written last.

    Those of a transaction take effect where it is committed, whatever other transactions have pending.
    """
    found = {
        (group.group_id, topic, index): each.offset
        for group in state.groups.values()
        for topic, by_partition in group.offsets.items()
        for index, each in by_partition.items()
    }
    expected = {place: each.offset for place, (_, each) in _effective_offsets(log).items()}
    for place in sorted(found.keys() | expected.keys()):
        if found.get(place) != expected.get(place):
            yield f"3: the offset of {place} is {found.get(place)}, and {expected.get(place)} has taken effect"


GroupPartition = tuple[str, str, int]
"""Group, topic, partition index."""
Written = dict[GroupPartition, tuple[int, OffsetToCommit]]
"""The place in the log at which each offset was written, and the offset."""


def _effective_offsets(log: Log) -> Written:
    topics: set[str] = set()
    effective: Written = {}
    pending: dict[TransactionId, Written] = {}
    for number, event in enumerate(log):
        match event:
            case TopicCreated():
                topics.add(event.topic)
            case OffsetsCommitted():
                effective |= _written(event, number, topics)
            case TransactionalOffsetsCommitted():
                pending.setdefault(event.transaction_id, {}).update(_written(event, number, topics))
            case TransactionEnded():
                for place, last in pending.pop(event.transaction_id, {}).items():
                    if event.committed:
                        effective[place] = max(last, effective.get(place, last), key=_number)
            case TopicDeleted():
                topics.discard(event.topic)
                for offsets in (effective, *pending.values()):
                    _forget(offsets, [place for place in offsets if place[1] == event.topic])
            case GroupDeleted():
                for offsets in (effective, *pending.values()):
                    _forget(offsets, [place for place in offsets if place[0] == event.group_id])
            case OffsetsDeleted():
                for offsets in (effective, *(pending.values() if event.pending else ())):
                    _forget(offsets, [(event.group_id, topic, index) for topic, index in event.partitions])
            case _:
                pass
    return effective


def _written(event: OffsetsCommitted | TransactionalOffsetsCommitted, number: int, topics: Set[str]) -> Written:
    return {
        (event.group_id, each.topic, each.partition): (number, each) for each in event.offsets if each.topic in topics
    }


def _number(written: tuple[int, OffsetToCommit]) -> int:
    return written[0]


def _forget(offsets: Written, places: Iterable[GroupPartition]) -> None:
    for place in places:
        offsets.pop(place, None)


def groups_expire_unused(state: State, log: Log) -> Iterator[str]:
    """No group expires that has members, or offsets that wait for a transaction or were committed too lately.

    A group in which a Spark query remembers its commits never expires.
    """
    used_ms: dict[str, int] = {}
    members: dict[str, set[str]] = {}
    pending: dict[TransactionId, set[str]] = {}
    for number, event in enumerate(log):
        match event:
            case OffsetsCommitted():
                used_ms[event.group_id] = event.at_ms
            case TransactionalOffsetsCommitted():
                pending.setdefault(event.transaction_id, set()).add(event.group_id)
            case TransactionEnded():
                ended = pending.pop(event.transaction_id, set())
                used_ms |= dict.fromkeys(ended, event.at_ms) if event.committed else {}
            case GroupSettled():
                members[event.group_id] = set(() if event.membership is None else event.membership.members)
            case ConsumerGroupUpdated():
                present = members.setdefault(event.group_id, set())
                present |= {each.member_id for each in event.members}
                present -= set(event.gone)
            case GroupDeleted():
                waits = any(event.group_id in each for each in pending.values())
                idle_ms = event.expired_at_ms - used_ms.get(event.group_id, 0)
                too_early = idle_ms < state.limits.offsets_retention_ms
                if event.expired_at_ms and (members.get(event.group_id) or waits or too_early):
                    yield f"groups: {event} is in use: {members.get(event.group_id)}, {waits}, idle for {idle_ms} ms"
                if event.expired_at_ms and _remembers_spark(event.group_id, log[:number]):
                    yield f"groups: {event} has what a Spark query remembers"
                for each in pending.values():
                    each.discard(event.group_id)
            case _:
                pass


def _remembers_spark(group_id: str, log: Log) -> bool:
    offsets = ((place[0], each) for place, (_, each) in _effective_offsets(log).items())
    return any(name == group_id and each.metadata.startswith(KEPT_METADATA) for name, each in offsets)


def groups_are_durable(state: State, log: Log) -> Iterator[str]:
    """The journal has all that members are told of their groups (0025), and a group is of one protocol.

    And no partition is two members' in the consumer protocol.
    """
    for group_id in state.settled.keys() & state.settled_consumers.keys():
        yield f"groups: {group_id} is of both protocols"
    for group_id, membership in state.volatile.memberships.items():
        if membership.phase is Phase.STABLE and settled(membership) != state.settled.get(group_id):
            yield f"groups: {group_id} is {membership}, and a restart finds {state.settled.get(group_id)}"
    for group_id, group in state.volatile.consumer_groups.items():
        kept = state.settled_consumers.get(group_id)
        if group.members and (kept is None or replace(group, topics_version=kept.topics_version) != kept):
            yield f"groups: {group_id} is {group}, and a restart finds {kept}"
        held = [partition for member in group.members.values() for partition in member.held]
        if len(held) != len(set(held)):
            yield f"groups: a partition is held by two members of {group_id}: {group}"


def group_epochs_grow(state: State, log: Log) -> Iterator[str]:
    """Epochs only grow, below what is reserved (0012); also where a group changes its protocol with its members.

    A group of the classic protocol whose last member is gone may count from 1 again.
    """
    reserved, last = 0, dict[tuple[type[Event] | None, str], int]()
    members: dict[str, set[str]] = {}
    for event in log:
        match event:
            case GroupEpochsReserved():
                reserved = event.end_epoch
                continue
            case GroupDeleted():
                members.pop(event.group_id, None)
                continue
            case GroupSettled():
                now = event.membership
                present, epoch = (set(), None) if now is None else (set(now.members), now.generation)
            case ConsumerGroupUpdated():
                joined = {each.member_id for each in event.members}
                present, epoch = members.get(event.group_id, set()) - set(event.gone) | joined, event.epoch
            case _:
                continue
        members[event.group_id] = present
        for key in ((type(event), event.group_id), (None, event.group_id)):
            if epoch is not None and not last.get(key, 0) <= epoch < reserved:
                yield f"groups: {event} comes after {last.get(key)}, and {reserved} is reserved"
            elif epoch is not None:
                last[key] = epoch
        if not present:
            last.pop((GroupSettled, event.group_id), None)
            last.pop((None, event.group_id), None)


def groups_move_with_their_members(state: State, log: Log) -> Iterator[str]:
    """A group that changes its protocol has the members that it had, each with what it has been assigned (KIP-848).

    Those that are gone are the one whose leaving moves it, and a static member that has come back under another id. A
    group may be deleted only without members, so that the next of its name has had none.
    """
    topics: dict[str, bytes] = {}
    classic: dict[str, Membership] = {}
    consumers: dict[str, ConsumerGroup] = {}
    for event in log:
        match event:
            case TopicCreated():
                topics[event.topic] = event.topic_id
            case TopicDeleted():
                topics.pop(event.topic, None)
            case GroupSettled():
                before = consumers.pop(event.group_id, None)
                if event.membership is not None:
                    classic[event.group_id] = event.membership
                    yield from _against_downgrade(event.group_id, before, event.membership, topics)
                else:
                    classic.pop(event.group_id, None)
            case ConsumerGroupUpdated():
                now = consumers[event.group_id] = updated(consumers.get(event.group_id), event)
                if (settled_as := classic.pop(event.group_id, None)) is not None:
                    yield from _against_upgrade(event.group_id, settled_as, now, topics)
            case _:
                pass


def _against_upgrade(
    group_id: str, before: Membership, now: ConsumerGroup, topics: Mapping[str, bytes]
) -> Iterator[str]:
    taken: dict[TopicPartition, str] = {}
    for key, member in before.members.items():
        heir = now.members.get(key if member.instance_id is None else now.static.get(member.instance_id, key))
        assigned = read_assignment(member.assignment) or ()
        owned = {(topics[topic], index) for topic, index in assigned if topic in topics} - taken.keys()
        taken |= dict.fromkeys(owned, key)
        if heir is None:
            continue  # a rebalance that was under way is not in the log: the member may have left in it
        others = [each for each in now.members.values() if each is not heir]
        for partition in owned:
            if any(partition in each.held for each in others):
                yield f"groups: {group_id} moves, and gives {partition} of {key}, which reads it still, to another"


def _against_downgrade(
    group_id: str, before: ConsumerGroup | None, now: Membership, topics: Mapping[str, bytes]
) -> Iterator[str]:
    for key, consumer in before.members.items() if before is not None else ():
        if consumer.classic is not None and key not in now.members and consumer.instance_id is None:
            yield f"groups: {group_id} moves back, and forgets {key}"
    for key, member in now.members.items() if before is not None and before.members else ():
        had = before.members.get(key) if before is not None else None
        assigned = {(topics.get(topic), index) for topic, index in read_assignment(member.assignment) or ()}
        if had is not None and not assigned <= had.assigned.keys():
            yield f"groups: {group_id} moves back, and {key} has {assigned}, which it did not have: {had}"
