"""The lag of consumer groups and the backlog of subscriptions, counted record by record as `exacta groups lag` does.

Counting looks into the index of the journal. So the count of a group's partition is kept, and made again only where an
offset has moved. One scrape counts at most `MOST_COUNTED` partitions again, in turns of the loop.
"""

import asyncio
from collections import defaultdict
from functools import partial

from exacta.core.ids import PartitionId
from exacta.core.queries.group_positions import group_positions, groups_with_offsets, member_counts
from exacta.core.queries.subscriptions import subscription_count
from exacta.core.queries.topic_lists import topic_names
from exacta.core.subscriptions.backlog import BacklogPart, ranges_to_count
from exacta.core.subscriptions.description import FIRST, DescribedSubscription, SubscriptionsWanted, page_of
from exacta.metrics import families
from exacta.metrics.measured import Labels, Measured, largest, single
from exacta.metrics.sources import MOST_COUNTED
from exacta.ports.log import Log
from exacta.readmodel.subscriptions import Place

AT_ONCE = 50
"""This many partitions are counted in one turn of the loop."""

_PAGE = 200
_PAGE_SIZE = 2_000
_PAGE_PARTITIONS = 1_000

_Key = tuple[PartitionId, int, int, int]
"""A partition, and the offsets from which, to which, and behind which to which records are counted (`_count`)."""


class Lags:
    """Counts for one broker, and remembers. `most` is the bound on series."""

    def __init__(self, engine: Log, most: int) -> None:
        self._engine = engine
        self._most = most
        self._known: dict[_Key, tuple[int, int]] = {}
        self._room = 0
        self._uncounted = 0

    async def measure(self) -> list[Measured]:
        """Return the metrics of groups and subscriptions."""
        self._room, self._uncounted = MOST_COUNTED, 0
        found = [*await self._of_groups(), *await self._of_subscriptions()]
        return [*found, single(families.LAG_UNCOUNTED, self._uncounted)]

    async def _of_groups(self) -> list[Measured]:
        look = self._engine.advice.look
        members = look(member_counts)
        known = look(groups_with_offsets)
        unread: defaultdict[Labels, float] = defaultdict(float)
        held_back: defaultdict[Labels, float] = defaultdict(float)
        seen: dict[_Key, tuple[int, int]] = {}
        looked = 0
        for group in known:
            for topic, key in self._positions(group):
                looked += 1
                if looked % AT_ONCE == 0:
                    await asyncio.sleep(0)
                counted = self._count(key)
                if counted is not None:
                    seen[key] = counted
                    unread[group, topic] += counted[0]
                    held_back[group, topic] += counted[1]
        self._known = seen
        return [
            single(families.GROUPS, len(members.keys() | set(known))),
            largest(families.GROUP_MEMBERS, {(group,): count for group, count in members.items()}, self._most),
            largest(families.GROUP_LAG, unread, self._most),
            largest(families.GROUP_HELD_BACK, held_back, self._most),
        ]

    def _positions(self, group: str) -> list[tuple[str, _Key]]:
        """Return the topics that a group reads, each with what is to be counted of one partition."""
        found: list[tuple[str, _Key]] = []
        for each in self._engine.advice.look(partial(group_positions, group=group)):
            seen = self._engine.visible(each.topic, each.index)
            if seen is not None:
                begin = max(each.offset, seen.log_start_offset)
                key = each.partition_id, begin, seen.last_stable_offset, seen.high_watermark
                found.append((each.topic, key))
        return found

    def _count(self, key: _Key) -> tuple[int, int] | None:
        """Return the records to be read, and those that are held back; None: that is too much for this scrape."""
        counted = self._known.get(key)
        if counted is None:
            if not self._room:
                self._uncounted += 1
                return None
            self._room -= 1
            count = self._engine.lookups.count_unaborted
            partition_id, begin, stable, end = key
            behind = max(begin, stable)
            unread = count(partition_id, begin, stable) if begin < stable else 0
            counted = unread, count(partition_id, behind, end) if behind < end else 0
        return counted

    async def _of_subscriptions(self) -> list[Measured]:
        look = self._engine.advice.look
        number = look(subscription_count)
        backlog: defaultdict[Labels, float] = defaultdict(float)
        after: Place | None = FIRST if number else None
        topics = dict.fromkeys(look(topic_names)) if number else {}
        while after is not None:
            wanted = SubscriptionsWanted(
                topics=topics, after=after, most=_PAGE, most_size=_PAGE_SIZE, most_partitions=_PAGE_PARTITIONS
            )
            page = look(partial(page_of, wanted=wanted))
            for each in page.subscriptions:
                if each.told.is_durable:
                    await self._add_backlog(each, backlog)
            after = page.end
            await asyncio.sleep(0)
        return [
            single(families.SUBSCRIPTIONS, number),
            largest(families.SUBSCRIPTION_BACKLOG, backlog, self._most),
        ]

    async def _add_backlog(self, each: DescribedSubscription, backlog: defaultdict[Labels, float]) -> None:
        ranges = [found for found in ranges_to_count(each) if found[0] is BacklogPart.LEFT]
        seen = self._engine.visible(each.told.topic, each.told.partition)
        if seen is None or len(ranges) > self._room:
            self._uncounted += 1
            return
        self._room -= len(ranges)
        left = 0
        for done, (_, sign, first, end) in enumerate(ranges):
            if done % AT_ONCE == 0:
                await asyncio.sleep(0)
            last = min(end, seen.high_watermark)
            if first < last:
                left += sign * self._engine.lookups.count_between(
                    each.partition_id, first, last, read_committed=each.reads_committed
                )
        backlog[each.told.topic, each.told.name] += left
