"""The clients of a world of several brokers: programs that submit the core's commands to whichever broker leads.

They have no wire protocol. A call may be lost before the broker gets it, or its answer on the way back. A client that
hears nothing asks again, also another broker: who believes to lead is asked, and a paused leader believes that.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from exacta.core.commands import (
    Acknowledge,
    AppendBatch,
    BeginTransaction,
    Command,
    CommitOffsets,
    CreateTopic,
    DeleteTopic,
    EndHandle,
    EndTransaction,
    InitProducerId,
    OffsetToCommit,
    Subscribe,
)
from exacta.core.commands.subscriptions import EARLIEST
from exacta.core.ids import Offset, ProducerEpoch, ProducerId, TransactionVersion
from exacta.core.rejections import Rejection
from exacta.core.replies import (
    DONE,
    Appended,
    ProducerBoundReply,
    Subscribed,
    TopicCreatedReply,
    TopicDeletedReply,
    TransactionBegunReply,
    TransactionEndedReply,
)
from exacta.core.values.subscriptions import SubscriptionType
from exacta.core.writers import IdempotentWriter
from simulation.clients.batches import batch
from simulation.clients.connection import Disconnected
from simulation.cluster.broker import ClusterBroker
from simulation.cluster.told import Outcome, Place, Told, Writing
from simulation.loop import SimulatedLoop

WAY_SECONDS = (0.0001, 0.004)
LOST_SHARE = 0.02
PATIENCE_SECONDS = 3.0
THINK_SECONDS = (0.01, 0.5)
FENCED = (
    Rejection.PRODUCER_FENCED,
    Rejection.INVALID_PRODUCER_EPOCH,
    Rejection.INVALID_TRANSACTION_STATE,
    Rejection.INVALID_PRODUCER_ID_MAPPING,
    Rejection.CONCURRENT_TRANSACTIONS,
)
"""The answers after which a transactional producer begins with another epoch."""
ENDED = (Rejection.INVALID_TRANSACTION_STATE, Rejection.TRANSACTION_ENDED, Rejection.TRANSACTION_NOT_FOUND)


class Client:
    """One program's way to the brokers, and what it knows."""

    def __init__(
        self,
        name: str,
        loop: SimulatedLoop,
        chance: random.Random,
        brokers: Mapping[int, ClusterBroker],
        told: Told,
        places: Sequence[Place],
        now_ms: Callable[[], int],
    ) -> None:
        self.name = name
        self.chance = chance
        self.told = told
        self.places = places
        self.now_ms = now_ms
        self.is_over = False
        self._loop = loop
        self._brokers = brokers

    async def think(self) -> None:
        """Wait for a while."""
        await asyncio.sleep(self.chance.uniform(*THINK_SECONDS))

    async def ask(self, command: Command, payload: bytes | None = None) -> Any:
        """Submit a command to a broker that believes to lead, and return the answer; raise Disconnected."""
        await asyncio.sleep(self.chance.uniform(*WAY_SECONDS))
        leaders = [each for each in self._brokers.values() if each.engine is not None and each.process is not None]
        if not leaders or self.chance.random() < LOST_SHARE:
            raise Disconnected
        broker = self.chance.choice(leaders)
        engine, process = broker.engine, broker.process
        assert engine is not None
        assert process is not None
        answered: asyncio.Future[Any] = self._loop.create_future()

        def done(answers: list[Any]) -> None:
            if not answered.done():
                answered.set_result(answers[0])

        process.run(broker.submit, engine, command, payload, done)
        try:
            answer = await asyncio.wait_for(answered, PATIENCE_SECONDS)
        except TimeoutError:
            raise Disconnected from None
        self.told.answers += 1
        if self.chance.random() < LOST_SHARE:
            raise Disconnected
        return answer

    async def until_answered(self, command: Command, payload: bytes | None = None) -> tuple[Any, int]:
        """Ask until there is an answer; return how often it was asked for, too."""
        tries = 0
        while True:
            tries += 1
            try:
                return await self.ask(command, payload), tries
            except Disconnected:
                await asyncio.sleep(self.chance.uniform(0.02, 0.4))

    def batch(
        self, writing: Writing, place: Place, pair: tuple[int, int], sequence: int, *, transactional: bool
    ) -> Any:
        """Return the values, the bytes and the fields of another batch."""
        first = len(writing.sent)
        values = [f"{writing.name}:{first + each:04d}".encode() for each in range(self.chance.randint(1, 3))]
        writing.sent.update(dict.fromkeys(values, place))
        data = batch(values, pair, sequence, transactional=transactional, now_ms=self.now_ms())
        fields = {
            "topic": place[0],
            "partition": place[1],
            "record_count": len(values),
            "size": len(data),
            "max_timestamp_ms": self.now_ms(),
        }
        return values, data, fields


async def produce(here: Client) -> None:
    """Write as an idempotent producer does: each batch again and again until it is acknowledged."""
    bound, _ = await here.until_answered(InitProducerId(transactional_id=None, transaction_timeout_ms=60_000))
    assert isinstance(bound, ProducerBoundReply), bound
    here.told.given("producer id", bound.producer_id, here.name)
    writing = here.told.begin(here.name, Outcome.COMMITTED)
    sequences = dict.fromkeys(here.places, 0)
    pair = bound.producer_id, bound.producer_epoch
    while not here.is_over:
        await here.think()
        place = here.chance.choice(here.places)
        values, data, fields = here.batch(writing, place, pair, sequences[place], transactional=False)
        writer = IdempotentWriter(
            producer_id=pair[0], producer_epoch=pair[1], base_sequence=sequences[place], version=TransactionVersion.V2
        )
        answer, _ = await here.until_answered(AppendBatch(**fields, writer=writer), data)
        if not isinstance(answer, Appended):
            here.told.refused(here.name, place, answer)
            return
        sequences[place] += len(values)
        writing.acknowledged.update({value: answer.base_offset + each for each, value in enumerate(values)})
        here.told.ends[place] = max(here.told.ends[place], answer.base_offset + len(values))


async def transact(here: Client) -> None:
    """Write in transactions of version 2, and begin with another epoch whenever one is not known to have ended well."""
    number = 0
    while not here.is_over:
        bound, _ = await here.until_answered(
            InitProducerId(transactional_id=here.name, transaction_timeout_ms=here.chance.choice([2_000, 60_000]))
        )
        if not isinstance(bound, ProducerBoundReply):
            here.told.refused(here.name, "its transactional id", bound)
            return
        pair: tuple[int, int] | None = (bound.producer_id, bound.producer_epoch)
        while pair is not None and not here.is_over:
            number += 1
            writing = here.told.begin(f"{here.name}.{number}")
            pair = await _transaction(here, writing, pair)


async def _transaction(here: Client, writing: Writing, pair: tuple[int, int]) -> tuple[int, int] | None:
    sequences: dict[Place, int] = {}
    who: dict[str, Any] = {"producer_id": ProducerId(pair[0]), "producer_epoch": ProducerEpoch(pair[1])}
    who |= {"transactional_id": here.name, "version": TransactionVersion.V2}
    for _ in range(here.chance.randint(1, 4)):
        await here.think()
        place = here.chance.choice(here.places)
        sequence = sequences.get(place, 0)
        values, data, fields = here.batch(writing, place, pair, sequence, transactional=True)
        command = AppendBatch(**fields, writer=IdempotentWriter(**who, base_sequence=sequence))
        answer, _ = await here.until_answered(command, data)
        if answer in FENCED:
            writing.outcome = Outcome.ABORTED
            return None
        if not isinstance(answer, Appended):
            here.told.refused(here.name, place, answer)
            return None
        sequences[place] = sequence + len(values)
        writing.acknowledged.update(dict.fromkeys(values, -1))
    commit = here.chance.random() < 0.7
    writing.outcome = Outcome.UNKNOWN if commit else Outcome.ABORTED
    answer, tries = await here.until_answered(EndTransaction(**who, commit=commit))
    if isinstance(answer, TransactionEndedReply):
        writing.outcome = Outcome.COMMITTED if commit else Outcome.ABORTED
        return answer.producer_id, answer.producer_epoch
    if tries == 1:
        writing.outcome = Outcome.ABORTED
    return None


async def share(here: Client) -> None:
    """Write into transactions that have no transactional id; each write is tried once."""
    number = 0
    while not here.is_over:
        await here.think()
        number += 1
        begun, _ = await here.until_answered(BeginTransaction(timeout_ms=here.chance.choice([2_000, 60_000])))
        if not isinstance(begun, TransactionBegunReply):
            continue
        here.told.given("transaction", begun.transaction_id, f"{here.name}.{number}")
        here.told.given("producer id", begun.producer_id, f"{here.name}.{number}")
        writing = here.told.begin(f"{here.name}.{number}")
        for place in here.chance.sample(here.places, here.chance.randint(1, len(here.places))):
            values, data, fields = here.batch(writing, place, (begun.producer_id, 0), -1, transactional=True)
            handle: dict[str, Any] = {"transaction": begun.transaction_id, "handle_producer_id": begun.producer_id}
            try:
                answer = await here.ask(AppendBatch(**fields, **handle), data)
            except Disconnected:
                continue
            if isinstance(answer, Appended):
                writing.acknowledged.update(dict.fromkeys(values, -1))
            elif answer not in ENDED:
                here.told.refused(here.name, place, answer)
        commit = here.chance.random() < 0.7
        writing.outcome = Outcome.UNKNOWN if commit else Outcome.ABORTED
        answer, tries = await here.until_answered(EndHandle(transaction_id=begun.transaction_id, commit=commit))
        if commit and answer == DONE:
            writing.outcome = Outcome.COMMITTED
        elif commit and tries == 1:
            writing.outcome = Outcome.ABORTED


async def commit_offsets(here: Client) -> None:
    """Commit offsets of a group of its own, which only grow."""
    offset = 0
    while not here.is_over:
        await here.think()
        offset += 1
        place = here.chance.choice(here.places)
        named = OffsetToCommit(topic=place[0], partition=place[1], offset=offset)
        await here.until_answered(CommitOffsets(group_id=here.name, offsets=(named,)))
        here.told.offsets[here.name, place] = offset


async def consume(here: Client) -> None:
    """Acknowledge the messages of a subscription, as far as there are acknowledged records."""
    topic, partition = place = here.places[0]
    named: dict[str, Any] = {"topic": topic, "partition": partition, "subscription": here.name}
    made = Subscribe(**named, subscription_type=SubscriptionType.SHARED, begin=EARLIEST)
    answer, _ = await here.until_answered(made)
    if not isinstance(answer, Subscribed):
        here.told.refused(here.name, place, answer)
        return
    while not here.is_over:
        await here.think()
        end = here.told.ends[place]
        if end > here.told.positions[here.name, place]:
            answer, _ = await here.until_answered(Acknowledge(**named, before=Offset(end)))
            if answer == DONE:
                here.told.positions[here.name, place] = end


async def administer(here: Client) -> None:
    """Create topics, and delete some of them."""
    number = 0
    while not here.is_over:
        await here.think()
        number += 1
        topic = f"{here.name}.{number}"
        topic_id = number.to_bytes(16, "big")
        answer, tries = await here.until_answered(CreateTopic(topic=topic, topic_id=topic_id, partition_count=2))
        is_repeat = tries > 1 and answer is Rejection.TOPIC_ALREADY_EXISTS
        if not isinstance(answer, TopicCreatedReply) and not is_repeat:
            here.told.refused(here.name, topic, answer)
            return
        here.told.topics.add(topic)
        await here.think()
        if here.chance.random() < 0.7:
            here.told.topics.discard(topic)
            answer, tries = await here.until_answered(DeleteTopic(topic=topic))
            is_repeat = tries > 1 and answer is Rejection.UNKNOWN_TOPIC_OR_PARTITION
            if not isinstance(answer, TopicDeletedReply) and not is_repeat:
                here.told.refused(here.name, topic, answer)
                return
            here.told.deleted.add(topic)


PROGRAMS = (produce, transact, transact, share, commit_offsets, consume, administer)
