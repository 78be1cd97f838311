"""The server-side assignors of KIP-848, as functions of subscriptions: they decide which member owns which partition.

Both give every partition to one of its topic's subscribers, if there are any. `range` gives neighbouring partitions of
each topic to neighbouring members, so that a member gets the same partitions of all topics that are partitioned alike.
`uniform` gives shares as even over all topics as subscriptions allow, with as few changes as that takes.
"""

from collections import deque
from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush

from msgspec import Struct

from exacta.core.values.consumer_groups import TopicPartition

Target = dict[str, frozenset[TopicPartition]]


class Subscriber(Struct, frozen=True, kw_only=True):
    """A member as an assignor sees it: the topic ids that it reads, and the partitions that it was to own until now."""

    topics: frozenset[bytes]
    owned: frozenset[TopicPartition] = frozenset()
    instance_id: str | None = None


Subscribers = Mapping[str, Subscriber]
Assignor = Callable[[Subscribers, Mapping[bytes, int]], Target]


def assign_range(members: Subscribers, topics: Mapping[bytes, int]) -> Target:
    """Give each subscriber of a topic a range of its partitions; the first get one more. `topics`: partition counts."""
    target: dict[str, set[TopicPartition]] = {member_id: set() for member_id in members}
    ordered = _in_order(members)
    for topic_id, count in topics.items():
        subscribers = [member_id for member_id in ordered if topic_id in members[member_id].topics]
        if not subscribers:
            continue
        share, more = divmod(count, len(subscribers))
        first = 0
        for number, member_id in enumerate(subscribers):
            end = first + share + (number < more)
            target[member_id].update((topic_id, index) for index in range(first, end))
            first = end
    return {member_id: frozenset(partitions) for member_id, partitions in target.items()}


def assign_uniform(members: Subscribers, topics: Mapping[bytes, int]) -> Target:
    """Leave partitions where they are if possible, give the rest to the members with fewest, and even out."""
    balance = _Balance(members, topics)
    balance.hand_out()
    balance.even_out()
    return {member_id: frozenset(partitions) for member_id, partitions in balance.owned.items()}


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}


def _in_order(members: Subscribers) -> list[str]:
    """Sort static members by instance id, so that a successor has its predecessor's place, and then the others."""

    def place(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].instance_id
        return instance_id is None, instance_id or member_id

    return sorted(members, key=place)


class _Balance:
    """An assignment in the making."""

    def __init__(self, members: Subscribers, topics: Mapping[bytes, int]) -> None:
        self.topics = topics
        self.order = {member_id: number for number, member_id in enumerate(_in_order(members))}
        self.owned: dict[str, set[TopicPartition]] = {}
        self.by_topic: dict[str, dict[bytes, list[TopicPartition]]] = {}
        self.subscribers: dict[bytes, list[str]] = {topic_id: [] for topic_id in topics}
        taken: set[TopicPartition] = set()
        for member_id in self.order:
            member = members[member_id]
            for topic_id in member.topics & topics.keys():
                self.subscribers[topic_id].append(member_id)
            kept = {
                (topic_id, index)
                for topic_id, index in member.owned
                if topic_id in member.topics and index < topics.get(topic_id, 0)
            }
            kept -= taken
            taken |= kept
            self.owned[member_id] = kept
        self.unowned = [
            (topic_id, index)
            for topic_id, count in topics.items()
            if self.subscribers[topic_id]
            for index in range(count)
            if (topic_id, index) not in taken
        ]

    def hand_out(self) -> None:
        """Give each partition without an owner to the subscriber with fewest."""
        heaps: dict[tuple[str, ...], list[tuple[int, int, str]]] = {}  # topics often have the same subscribers
        for partition in self.unowned:
            names = tuple(self.subscribers[partition[0]])
            heap = heaps.get(names)
            if heap is None:
                heap = heaps[names] = [(len(self.owned[name]), self.order[name], name) for name in names]
                heapify(heap)
            while True:
                load, order, name = heappop(heap)
                if load == len(self.owned[name]):
                    break
                heappush(heap, (len(self.owned[name]), order, name))  # it got some of another topic since
            self.owned[name].add(partition)
            heappush(heap, (load + 1, order, name))

    def even_out(self) -> None:
        """Move partitions along the shortest ways from members that have more to members that have at least two fewer.

        When no such way is left, no assignment is more even: any better one could be reached by a chain of moves.
        """
        loads = [len(owned) for owned in self.owned.values()]
        if max(loads, default=0) < min(loads, default=0) + 2:
            return
        for name in self.owned:
            places: dict[bytes, list[TopicPartition]] = {}
            for partition in sorted(self.owned[name]):
                places.setdefault(partition[0], []).append(partition)
            self.by_topic[name] = places
        while self._improve():
            pass

    def _improve(self) -> bool:
        loads = sorted(self.owned, key=lambda name: (-len(self.owned[name]), self.order[name]))
        if not loads:
            return False
        least = len(self.owned[loads[-1]])
        for name in loads:
            if len(self.owned[name]) < least + 2:
                return False
            way = self._way_from(name)
            if way:
                for giver, topic_id, taker in way:
                    partition = self.by_topic[giver][topic_id].pop()
                    self.owned[giver].discard(partition)
                    self.owned[taker].add(partition)
                    self.by_topic[taker].setdefault(topic_id, []).append(partition)
                return True
        return False

    def _way_from(self, start: str) -> list[tuple[str, bytes, str]]:
        """Return the moves that take one partition from `start` to a member with at least two fewer, or none."""
        most = len(self.owned[start]) - 2
        came: dict[str, tuple[str, bytes] | None] = {start: None}
        seen_topics: set[bytes] = set()
        queue = deque([start])
        while queue:
            giver = queue.popleft()
            for topic_id, partitions in self.by_topic[giver].items():
                if not partitions or topic_id in seen_topics:
                    continue  # all subscribers of a topic are reached at the same distance
                seen_topics.add(topic_id)
                best: str | None = None
                for taker in self.subscribers[topic_id]:
                    if taker in came:
                        continue
                    came[taker] = (giver, topic_id)
                    queue.append(taker)
                    load = len(self.owned[taker])
                    if load <= most and (best is None or load < len(self.owned[best])):
                        best = taker
                if best is not None:
                    return self._moves(came, best)
        return []

    @staticmethod
    def _moves(came: dict[str, tuple[str, bytes] | None], end: str) -> list[tuple[str, bytes, str]]:
        moves: list[tuple[str, bytes, str]] = []
        taker = end
        while (step := came[taker]) is not None:
            giver, topic_id = step
            moves.append((giver, topic_id, taker))
            taker = giver
        return moves
