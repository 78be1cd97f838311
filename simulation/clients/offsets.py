"""Programs that keep offsets in groups of their own, some of which nobody uses for longer than offsets are kept.

They commit by hand, as members of both protocols, in transactions, and as Spark queries do, which keeps a group for
ever. `told.py` owns what they may find afterwards.
"""

import asyncio
from contextlib import suppress
from typing import Any

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from simulation.clients.connection import Disconnected
from simulation.clients.pipeline import ConsumerMember, Member, Rejoin, offset_request
from simulation.clients.surroundings import Surroundings
from simulation.clients.transactional import Abort, Fenced, Producer
from simulation.group_use import SPARKS
from simulation.history import Place
from simulation.told import OffsetsTold

STANDALONE = ("standalone-0", "standalone-1")
OF_SPARK = "sparks"
TRANSACTIONAL = "transactional"
CLASSIC, CONSUMERS = "sitting", "sitting-consumers"
GROUPS = (*STANDALONE, OF_SPARK, TRANSACTIONAL, CLASSIC, CONSUMERS)
PLACES: list[Place] = [("plain", 0), ("plain", 1)]
NOBODY = ("", -1)
SETTLED_SECONDS = 0.1
"""The seconds after which nothing arrives any more of what was sent on a connection that was given up."""


class _ReadsNothing:
    """A member that reads nothing."""

    async def positions(self, places: list[Place]) -> dict[Place, int]:
        """Return none: nobody needs them."""
        return {}


class _Sitter(_ReadsNothing, Member):
    """Such a member by the classic protocol."""


class _ConsumerSitter(_ReadsNothing, ConsumerMember):
    """Such a member by the consumer protocol."""


class _Keeper:
    """One instance of the program."""

    def __init__(self, here: Surroundings) -> None:
        self._here = here
        self._retention_seconds = here.history.retention_seconds
        self._told = here.history.offsets_told
        if not self._told:
            self._told.update((group, OffsetsTold(group, self._retention_seconds)) for group in GROUPS)
        self._number = here.instance * 10_000

    async def begin(self) -> None:
        """End what an instance that has crashed may have left under way."""
        await self.settle()
        with suppress(Fenced):
            await Producer(self._here).initialise()

    def _passes(self) -> None:
        for told in self._told.values():
            told.passes(self._now)

    @property
    def _now(self) -> float:
        return self._here.loop.time()

    def _some_offsets(self) -> dict[Place, int]:
        chance = self._here.chance
        self._number += 1
        return dict.fromkeys(chance.sample(PLACES, chance.choice([1, 1, len(PLACES)])), self._number)

    async def commit(self, group: str, member: tuple[str, int] = NOBODY) -> None:
        """Commit without a transaction."""
        offsets, told = self._some_offsets(), self._told[group]
        metadata = self._here.chance.choice(SPARKS) if group == OF_SPARK else None
        sent = self._now
        told.asks(offsets)
        try:
            answer = await self._here.connection.ask(_commit_request(group, member, offsets, metadata), 7)
        except Disconnected:
            await self.settle()
            return
        codes = {each.error_code for topic in answer.topics for each in topic.partitions}
        if codes == {ErrorCode.NONE}:
            told.stored(offsets, sent, self._now, stays=metadata is not None)
        elif member is NOBODY:
            self._here.history.refusals.append(f"refused: {group} does not store {offsets}: {codes}")

    async def transact(self) -> None:
        """Let offsets wait in a transaction, for longer than they are kept or not; end it, or do not."""
        here, chance, told = self._here, self._here.chance, self._told[TRANSACTIONAL]
        producer, offsets = Producer(here), self._some_offsets()
        try:
            await producer.initialise()
            await producer.send_offsets(TRANSACTIONAL, NOBODY, offsets)
            await here.think(self._retention_seconds)
            dice = chance.random()
            if dice < 0.6:
                sent = self._now
                told.asks(offsets)
                await producer.end(commit=True)
                told.stored(offsets, sent, self._now)
            elif dice < 0.8:
                await producer.abort()
        except (Abort, Fenced):
            await self.settle()

    async def sit(self, member: _Sitter | _ConsumerSitter) -> None:
        """Be a member for a while, and commit at the beginning, if at all; then leave, or fall silent."""
        here, chance, told = self._here, self._here.chance, self._told[member.group]
        await member.join()
        if chance.random() < 0.8:
            await self.commit(member.group, (member.member_id, member.generation))
        end = self._now + chance.uniform(0.0, 2.5) * self._retention_seconds
        try:
            while self._now < end and not here.is_over():
                await here.think(0.5)
                sent = self._now
                if await member.is_heard():
                    told.used(sent, self._now)
        except Rejoin:
            return
        if chance.random() < 0.7:
            await member.leave()

    async def look(self, group: str) -> None:
        """Read what a group has."""
        found = None
        try:
            answer = await self._here.connection.ask(offset_request(PLACES, group, stable=False), 7)
            found = _offsets_in(answer)
        except Disconnected:
            await self.settle()
        if found is not None:
            self._here.history.refusals += self._told[group].read(found, self._now)

    async def settle(self) -> None:
        """Wait until whatever was sent has arrived, or never will."""
        await asyncio.sleep(SETTLED_SECONDS)
        self._passes()


def _commit_request(
    group: str, member: tuple[str, int], offsets: dict[Place, int], metadata: str | None
) -> OffsetCommitRequest:
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (topic, partition), offset in offsets.items():
        entry = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=metadata
        )
        topics.setdefault(topic, OffsetCommitRequestTopic(name=topic, partitions=[])).partitions.append(entry)
    return OffsetCommitRequest(
        group_id=group, member_id=member[0], generation_id_or_member_epoch=member[1], topics=list(topics.values())
    )


def _offsets_in(answer: Any) -> dict[Place, int | None] | None:
    if answer.error_code != ErrorCode.NONE:
        return None
    return {
        (topic.name, each.partition_index): None if each.committed_offset < 0 else each.committed_offset
        for topic in answer.topics
        for each in topic.partitions
    }


async def keep_offsets(here: Surroundings) -> bool:
    """Keep offsets in several groups, and let them be for a while, until the world is over."""
    keeper, chance = _Keeper(here), here.chance
    await keeper.begin()
    while not here.is_over():
        await here.think(here.history.retention_seconds * chance.choice([0.1, 0.4]))
        dice = chance.random()
        if dice < 0.4:
            await keeper.commit(chance.choice(STANDALONE))
        elif dice < 0.45:
            await keeper.commit(OF_SPARK)
        elif dice < 0.55:
            await keeper.commit(TRANSACTIONAL)
        elif dice < 0.65:
            await keeper.transact()
        elif dice < 0.7:
            await keeper.sit(_Sitter(here, CLASSIC))
        elif dice < 0.75:
            await keeper.sit(_ConsumerSitter(here, CONSUMERS))
        for group in GROUPS:
            if chance.random() < 0.4:
                await keeper.look(group)
    return False


async def look_at_offsets(here: Surroundings) -> None:
    """Read all groups in the end, where somebody has kept offsets in them."""
    if not here.history.offsets_told:
        return
    keeper = _Keeper(here)
    await keeper.settle()
    for group in GROUPS:
        await keeper.look(group)
