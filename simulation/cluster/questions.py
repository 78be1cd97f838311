"""The questions that a world asks its brokers all the while, leaders and followers, and what their answers must have.

An answer of a leader is confirmed, and one of a follower is given once it has caught up. Neither may be behind anything
that was told before the question was asked. A paused leader gets questions, too, and answers them when it wakes.
"""

import random
from collections import Counter
from collections.abc import Callable

from exacta.core.rejections import Rejection
from exacta.core.state.state import State
from exacta.engine.engine import Engine
from exacta.engine.replica import Replica
from exacta.ports.log import FetchPartition, FetchRequest, FetchResult, Log
from exacta.protocol.kafka.committed import AbortedTransactions
from simulation.clients.batches import read_batches
from simulation.cluster.broker import ClusterBroker
from simulation.cluster.durable_log import DurableLog
from simulation.cluster.told import Place, Told

MOST_BYTES = 1 << 20
Read = dict[Place, list[tuple[int, bytes]]]
"""Offsets and values by partition."""


class _Asked:
    """All that was told before a question."""

    def __init__(self, log: DurableLog, told: Told) -> None:
        self.end = log.end
        self.offsets = told.offsets.copy()
        self.positions = told.positions.copy()
        self.ends = told.ends.copy()
        self.topics = set(told.topics)
        self.deleted = set(told.deleted)


def _view(state: State, _: int) -> tuple[Counter[tuple[str, Place]], Counter[tuple[str, Place]], set[str]]:
    offsets: Counter[tuple[str, Place]] = Counter()
    for group in state.groups.values():
        for topic, by_partition in group.offsets.items():
            offsets.update({(group.group_id, (topic, index)): each.offset for index, each in by_partition.items()})
    positions: Counter[tuple[str, Place]] = Counter()
    for partition in state.partitions.values():
        for name, subscription in partition.subscriptions.items():
            positions[name, (partition.topic, partition.index)] = subscription.position
    return offsets, positions, set(state.topics)


class Questions:
    """Ask, and complain of answers that are behind."""

    def __init__(
        self, chance: random.Random, log: DurableLog, told: Told, places: list[Place], complain: Callable[[str], None]
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._chance = chance
        self._log = log
        self._told = told
        self._places = places
        self._complain = complain

    def ask(self, broker: ClusterBroker) -> None:
        """Ask a broker something, if it lives."""
        if broker.process is not None:
            broker.process.run(self._ask, broker)

    def _ask(self, broker: ClusterBroker) -> None:
        asked = _Asked(self._log, self._told)
        if broker.engine is not None:
            self._chance.choice((self._of_state, self._of_shown, self._of_end))(broker, broker.engine, asked)
        elif broker.replica is not None:
            self._of_follower(broker, broker.replica, asked)

    # --- leaders ------------------------------------------------------------------------------------------------------

    def _of_state(self, broker: ClusterBroker, engine: Engine, asked: _Asked) -> None:
        who, known = broker.name, broker.end

        def answered(found: tuple[Counter[tuple[str, Place]], Counter[tuple[str, Place]], set[str]]) -> None:
            self.counts["confirmed"] += 1
            self._is_not_behind(who, known, asked)
            self._compare(who, found, asked)

        engine.read(_view, answered)

    def _of_shown(self, broker: ClusterBroker, engine: Engine, asked: _Asked) -> None:
        who = broker.name

        def answered() -> None:
            self.counts["shown"] += 1
            self._compare_ends(who, engine, asked)

        engine.when_shown(None, answered)

    def _of_end(self, broker: ClusterBroker, engine: Engine, asked: _Asked) -> None:
        who, place = broker.name, self._chance.choice(self._places)

        def answered(results: list[FetchResult]) -> None:
            self.counts["fetched"] += 1
            if results[0].rejection is Rejection.OFFSET_OUT_OF_RANGE:
                self._complain(f"stale read: {who} says that {asked.ends[place]} is out of range of {place}")

        engine.fetch(_fetch(place, asked.ends[place]), answered)

    # --- followers ----------------------------------------------------------------------------------------------------

    def _of_follower(self, broker: ClusterBroker, replica: Replica, asked: _Asked) -> None:
        who = broker.name

        def caught_up() -> None:
            self.counts["caught up"] += 1
            self._is_not_behind(who, replica.position, asked)
            self._compare(who, replica.view(_view), asked)
            self._compare_ends(who, replica, asked)

        replica.catch_up(caught_up)

    # --- answers ------------------------------------------------------------------------------------------------------

    def _is_not_behind(self, who: str, known: int, asked: _Asked) -> None:
        if known < asked.end:
            self._complain(f"stale read: {who} knows the log up to {known}, and {asked.end} was durable before")

    def _compare(
        self, who: str, found: tuple[Counter[tuple[str, Place]], Counter[tuple[str, Place]], set[str]], asked: _Asked
    ) -> None:
        offsets, positions, topics = found
        for what, has, had in (("offset", offsets, asked.offsets), ("position", positions, asked.positions)):
            for key, least in had.items():
                if has[key] < least:
                    self._complain(f"stale read: {who} has {what} {has[key]} of {key}, and {least} was told before")
        if missing := (asked.topics & self._told.topics) - topics:
            self._complain(f"stale read: {who} has no topics {missing}, which were made before")
        if risen := asked.deleted & topics:
            self._complain(f"stale read: {who} has the topics {risen}, which were deleted before")

    def _compare_ends(self, who: str, log: Log, asked: _Asked) -> None:
        for (topic, partition), least in asked.ends.items():
            visible = log.visible(topic, partition)
            end = 0 if visible is None else visible.high_watermark
            if end < least:
                self._complain(f"stale read: {who} shows {topic}-{partition} up to {end}, and {least} was told before")


def _fetch(place: Place, offset: int) -> FetchRequest:
    wanted = FetchPartition(place[0], place[1], offset, MOST_BYTES)
    return FetchRequest([wanted], 0, 1, MOST_BYTES, read_committed=True)


class Reading:
    """Read all committed records of some partitions, one after another, at one broker."""

    def __init__(
        self, log: Log, places: list[Place], done: Callable[[dict[Place, list[tuple[int, bytes]]]], None]
    ) -> None:
        self._log = log
        self._left = list(places)
        self._done = done
        self._found: Read = {place: [] for place in places}

    def go_on(self, offset: int = 0) -> None:
        """Read from an offset of the first partition that is left."""
        if not self._left:
            self._done(self._found)
            return
        place = self._left[0]

        def read(results: list[FetchResult]) -> None:
            [result] = results
            aborted = AbortedTransactions.of_fetch((each.producer_id, each.first_offset) for each in result.aborted)
            next_offset = offset
            for header, records, commits in read_batches(b"".join(map(bytes, result.records))):
                next_offset = max(next_offset, header.last_offset + 1)
                if header.control and not commits:
                    aborted.end(header)
                elif not header.control and not aborted.has(header):
                    self._found[place] += [each for each in records if each[0] >= offset]
            if next_offset == offset:
                self._left.pop(0)
                next_offset = 0
            self.go_on(next_offset)

        self._log.fetch(_fetch(place, offset), read)
