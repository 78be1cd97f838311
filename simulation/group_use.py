"""Keeps how each group is used, and says when it may expire: a second opinion on `exacta.core.groups.expiry`.

Owns the rule as Kafka's users know it (KIP-211). A group goes as a whole, once it has had no members for the retention
and its youngest offset is as old. Neither offsets that wait for a transaction nor what a Spark query remembers ever go.
A start counts as a use, as nobody knows what came before. And a group that may go does go, soon after.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from exacta.core.commands import OffsetToCommit
from exacta.core.events import (
    ConsumerGroupChanged,
    ConsumerGroupUpdated,
    Event,
    GroupDeleted,
    GroupSettled,
    MembershipChanged,
    OffsetsCommitted,
    OffsetsDeleted,
    TopicDeleted,
    TransactionalOffsetsCommitted,
    TransactionEnded,
)
from exacta.core.ids import TransactionId
from exacta.core.values.limits import Limits

Complain = Callable[[str], None]
Place = tuple[str, int]
SPARKS = ("spark replay marker ", '{"form":')
"""The metadata of the offsets by which Spark queries remember something begin with one of these."""
SLACK_MS = 1_000
"""A group that may go may stay for so long beyond three looks at it."""


class _Offset(NamedTuple):
    number: int
    """The place of the commit among all."""
    at_ms: int
    is_sparks: bool


class _Group:
    """One group's offsets and members."""

    def __init__(self) -> None:
        self.offsets: dict[Place, _Offset] = {}
        self.pending: dict[TransactionId, dict[Place, _Offset]] = {}
        self.has_offsets = False
        """True if it has, or has had, offsets. Whether others go in time is not judged: a restart may forget them."""
        self.members: set[str] = set()
        self.in_use_ms = 0
        """The last time at which it had a member."""
        self.waited_ms = 0
        """The last time at which it had offsets that waited for a transaction."""

    @property
    def of_spark(self) -> bool:
        return any(each.is_sparks for each in self.offsets.values())

    def used_ms(self, begun_ms: int) -> int:
        """Return the time from which the retention counts."""
        return max(begun_ms, self.in_use_ms, max((each.at_ms for each in self.offsets.values()), default=0))


class GroupUse:
    """The groups of one life of the broker."""

    def __init__(self, limits: Limits, begun_ms: int, events: Sequence[Event], on_expired: Callable[[], None]) -> None:
        """Begin with what earlier lives have left in the journal."""
        self._retention_ms = limits.offsets_retention_ms
        self._late_ms = 3 * limits.group_expiry_interval_ms + SLACK_MS
        self._begun_ms = begun_ms
        self._on_expired = on_expired
        self._groups: dict[str, _Group] = {}
        self._count = 0
        for event in events:
            self._take(event, begun_ms)

    def _group(self, group_id: str) -> _Group:
        return self._groups.setdefault(group_id, _Group())

    def decided(self, event: Event, now_ms: int, complain: Complain) -> None:
        """Look at an event that is about to be applied, and go on."""
        if isinstance(event, GroupDeleted) and event.expired_at_ms:
            self._on_expired()
            for why in self._against(event.group_id, now_ms):
                complain(f"expiry: {event.group_id} is forgotten, {why}")
        self._take(event, now_ms)

    def _against(self, group_id: str, now_ms: int) -> Iterator[str]:
        group = self._group(group_id)
        if group.members:
            yield f"and has the members {sorted(group.members)}"
        if group.pending:
            yield f"and has offsets that wait for the transactions {sorted(group.pending)}"
        if group.of_spark:
            yield "and holds what a Spark query remembers"
        idle_ms = now_ms - group.used_ms(self._begun_ms)
        if idle_ms < self._retention_ms:
            yield f"and is idle for {idle_ms} ms, not for {self._retention_ms}"

    def look(self, now_ms: int, complain: Complain) -> None:
        """Complain of groups that should have gone long ago."""
        for group_id, group in self._groups.items():
            if not group.has_offsets or group.members or group.pending or group.of_spark:
                continue
            late_ms = now_ms - max(group.used_ms(self._begun_ms) + self._retention_ms, group.waited_ms)
            if late_ms > self._late_ms:
                complain(f"expiry: {group_id} is still there, {late_ms} ms after its time")

    # --- events -------------------------------------------------------------------------------------------------------

    def _take(self, event: Event, now_ms: int) -> None:
        match event:
            case OffsetsCommitted():
                self._group(event.group_id).offsets |= self._written(event.offsets, event.at_ms)
                self._group(event.group_id).has_offsets = True
            case TransactionalOffsetsCommitted():
                pending = self._group(event.group_id).pending.setdefault(event.transaction_id, {})
                pending |= self._written(event.offsets, event.at_ms)
                self._group(event.group_id).has_offsets = True
            case TransactionEnded():
                for group in self._groups.values():
                    _end(group, event)
            case OffsetsDeleted():
                group = self._group(event.group_id)
                _forget(group, event.partitions, pending=event.pending)
            case TopicDeleted():
                for group in self._groups.values():
                    places = [*group.offsets, *(place for each in group.pending.values() for place in each)]
                    _forget(group, [place for place in places if place[0] == event.topic], pending=True)
            case GroupDeleted():
                self._groups.pop(event.group_id, None)
            case _:
                self._take_members(event, now_ms)

    def _take_members(self, event: Event, now_ms: int) -> None:
        match event:
            case MembershipChanged():
                self._replace_members(event.group_id, set(event.membership.members), now_ms)
            case GroupSettled():
                membership = event.membership
                self._replace_members(event.group_id, set(() if membership is None else membership.members), now_ms)
            case ConsumerGroupChanged():
                self._replace_members(event.group_id, set(event.group.members), now_ms)
            case ConsumerGroupUpdated():
                present = self._group(event.group_id).members | {each.member_id for each in event.members}
                self._replace_members(event.group_id, present - set(event.gone), now_ms)
            case _:
                pass

    def _replace_members(self, group_id: str, members: set[str], now_ms: int) -> None:
        group = self._group(group_id)
        if group.members and not members:
            group.in_use_ms = now_ms
        group.members = members

    def _written(self, offsets: Sequence[OffsetToCommit], at_ms: int) -> dict[Place, _Offset]:
        self._count += 1
        return {
            (each.topic, each.partition): _Offset(self._count, at_ms, each.metadata.startswith(SPARKS))
            for each in offsets
        }


def _end(group: _Group, event: TransactionEnded) -> None:
    pending = group.pending.pop(event.transaction_id, None)
    if pending is None:
        return
    group.waited_ms = event.at_ms
    for place, offset in pending.items():
        present = group.offsets.get(place)
        if event.committed and (present is None or present.number < offset.number):
            group.offsets[place] = offset._replace(at_ms=event.at_ms)


def _forget(group: _Group, places: Sequence[Place], *, pending: bool) -> None:
    for offsets in (group.offsets, *(group.pending.values() if pending else ())):
        for place in places:
            offsets.pop(place, None)
