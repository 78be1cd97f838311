"""A transactional producer, of version 1 or 2 of the protocol, as Kafka's own client for Java is one.

Owns the state machine: pair, sequences, what an error means (KIP-1050: ask again, abort, or give up), and KIP-360's
recovery by InitProducerId with the present pair. A request without an answer is sent again as it is, until it
has one, or, for records, until it has taken too long: then the transaction is aborted, and the epoch bumped.
"""

from typing import Any

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k00_produce,
    k22_init_producer_id,
    k24_add_partitions_to_txn,
    k25_add_offsets_to_txn,
    k26_end_txn,
    k28_txn_offset_commit,
)
from simulation.clients.batches import batch, sent
from simulation.clients.connection import Disconnected
from simulation.clients.surroundings import Surroundings
from simulation.history import Outcome, Place, Writing

RETRIABLE = frozenset({ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT})
FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING})
QUOTAS = frozenset({"aging"})
"""Topics that may be full: what is kept for their subscriptions alone has a bound."""
NOBODYS_FAULT = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TRANSACTION_ABORTABLE})
REJOIN = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
SENDS_OF_A_BATCH = 12

ENDED_ELSEWHERE = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.TRANSACTION_ABORTABLE})
"""The answers to a client whose joint transaction Pulsar's side has aborted, by version of the request."""


class Abort(Exception):
    """The transaction must be aborted; then this producer may go on."""


class Fenced(Exception):
    """This producer can do nothing more."""


class Producer:
    """A producer of one instance of a client, whose name is the transactional id.

    `forgetful` topics may be deleted and created again, so that a producer's state there is gone.
    """

    def __init__(self, here: Surroundings, *, forgetful: frozenset[str] = frozenset()) -> None:
        self.pair = (-1, -1)
        self._connection = here.connection
        self._history = here.history
        self._id = here.name
        self._is_second = here.version == 2
        self._timeout_ms = here.timeout_ms
        self._forgetful = forgetful
        self._now_ms = here.now_ms
        self._sequences: dict[Place, int] = {}
        self._added: set[Place] = set()
        self._group_added = False
        self._skips_end = False

    async def initialise(self) -> None:
        """Bind the id: to the first one that asks, or, by the present pair, to this instance once more (KIP-360)."""
        request = k22_init_producer_id.InitProducerIdRequest(
            transactional_id=self._id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self.pair[0],
            producer_epoch=self.pair[1],
        )
        answer = await self._connection.until_answered(request, 5 if self._is_second else 4)
        if answer.error_code != ErrorCode.NONE:
            raise Fenced
        self._hold((answer.producer_id, answer.producer_epoch))
        self._begin()

    def _hold(self, pair: tuple[int, int]) -> None:
        if pair != self.pair:
            self.pair = pair
            self._sequences.clear()

    def _begin(self) -> None:
        self._added.clear()
        self._group_added = False
        self._skips_end = False

    # --- within a transaction -----------------------------------------------------------------------------------------

    async def send(self, writing: Writing, batches: list[tuple[Place, list[bytes]]]) -> None:
        """Write batches, several in flight; return when all are acknowledged. Raises Abort, Fenced."""
        if not self._is_second:
            await self._add([place for place, _ in batches])
        waiting: list[tuple[Place, list[bytes], k00_produce.ProduceRequest]] = []
        for place, values in batches:
            sequence = self._sequences.get(place, 0)
            self._sequences[place] = sequence + len(values)
            writing.values.update(dict.fromkeys(values, place))
            data = batch(values, self.pair, sequence, transactional=True, now_ms=self._now_ms())
            waiting.append((place, values, produce_request(place, data, self._id)))
        for _ in range(SENDS_OF_A_BATCH):
            version = 12 if self._is_second else 11
            answers = await self._connection.ask_all([(request, version) for _, _, request in waiting])
            unanswered = []
            for each, answer in zip(waiting, answers, strict=True):
                if isinstance(answer, Disconnected) or not self._written(writing, each[0], each[1], answer):
                    unanswered.append(each)
            if not unanswered:
                return
            waiting = unanswered
            await self._connection.back_off()
        raise Abort

    def _written(self, writing: Writing, place: Place, values: list[bytes], answer: Any) -> bool:
        told = answer.responses[0].partition_responses[0]
        code = told.error_code
        if code == ErrorCode.NONE:
            for number, value in enumerate(values):
                writing.acknowledged[value] = told.base_offset + number
            return True
        if code in RETRIABLE or (code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self._history.disk_fills):
            return False  # of a full disk the one before it was refused, and comes again
        if code == ErrorCode.INVALID_PRODUCER_ID_MAPPING:
            raise Fenced
        if code == ErrorCode.INVALID_PRODUCER_EPOCH:
            self._skips_end = True
        elif code == ErrorCode.POLICY_VIOLATION and (place[0] in QUOTAS or self._may_be_full(place)):
            pass
        elif code not in NOBODYS_FAULT and place[0] not in self._forgetful:
            self._history.refusals.append(f"refused: {writing.name} to {place}: {ErrorCode(code).name}")
        raise Abort

    def _may_be_full(self, place: Place) -> bool:
        return self._history.may_be_full and self._history.stages(place[0])

    async def _add(self, places: list[Place]) -> None:
        new = [place for place in dict.fromkeys(places) if place not in self._added]
        if not new:
            return
        topics: dict[str, list[int]] = {}
        for topic, partition in new:
            topics.setdefault(topic, []).append(partition)
        request = k24_add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self.pair[0],
            v3_and_below_producer_epoch=self.pair[1],
            v3_and_below_topics=[
                k24_add_partitions_to_txn.AddPartitionsToTxnTopic(name=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ],
        )
        answer = await self._connection.until_answered(request, 3)
        for topic in answer.results_by_topic_v3_and_below:
            for result in topic.results_by_partition:
                self._check(result.partition_error_code)
        self._added.update(new)

    def _check(self, code: int) -> None:
        if code in NOBODYS_FAULT or code in REJOIN or code in ENDED_ELSEWHERE:
            raise Abort
        if code != ErrorCode.NONE:
            raise Fenced

    async def send_offsets(
        self, group: str, member: tuple[str, int], offsets: dict[Place, int], metadata: str = ""
    ) -> None:
        """Let the group's offsets take part in the transaction, by its member and generation (KIP-447)."""
        if not self._is_second and not self._group_added:
            add = k25_add_offsets_to_txn.AddOffsetsToTxnRequest(
                transactional_id=self._id, producer_id=self.pair[0], producer_epoch=self.pair[1], group_id=group
            )
            self._check((await self._connection.until_answered(add, 3)).error_code)
            self._group_added = True
        topics: dict[str, list[k28_txn_offset_commit.TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            entry = k28_txn_offset_commit.TxnOffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata or None
            )
            topics.setdefault(topic, []).append(entry)
        request = k28_txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group,
            producer_id=self.pair[0],
            producer_epoch=self.pair[1],
            member_id=member[0],
            generation_id=member[1],
            topics=[
                k28_txn_offset_commit.TxnOffsetCommitRequestTopic(name=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ],
        )
        answer = await self._connection.until_answered(request, 5 if self._is_second else 3)
        for topic_answer in answer.topics:
            for partition_answer in topic_answer.partitions:
                self._check(partition_answer.error_code)

    # --- its end ------------------------------------------------------------------------------------------------------

    async def commit(self, writing: Writing) -> None:
        """Commit; raise Fenced where nobody can tell what has become of it."""
        writing.outcome = Outcome.UNKNOWN
        await self.end(commit=True)
        writing.outcome = Outcome.COMMITTED

    async def abort(self, *, bump: bool = False) -> None:
        """Abort, and bump the epoch where something went wrong (version 2 always does)."""
        if not self._skips_end:
            await self.end(commit=False)
        if self._skips_end or (bump and not self._is_second):
            await self.initialise()

    async def end(self, *, commit: bool) -> None:
        """Ask for the end until it is answered; raise Abort where a commit cannot be, and Fenced."""
        request = k26_end_txn.EndTxnRequest(
            transactional_id=self._id, producer_id=self.pair[0], producer_epoch=self.pair[1], committed=commit
        )
        answer = await self._connection.until_answered(request, 5 if self._is_second else 3)
        if commit and answer.error_code in ENDED_ELSEWHERE:
            raise Abort
        if answer.error_code != ErrorCode.NONE:
            raise Fenced
        if self._is_second:
            self._hold((answer.producer_id, answer.producer_epoch))
        self._begin()


def produce_request(place: Place, records: bytes, transactional_id: str | None) -> k00_produce.ProduceRequest:
    """Make a Produce of one batch."""
    data = k00_produce.PartitionProduceData(index=place[1], records=sent(records))
    return k00_produce.ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=5_000,
        topic_data=[k00_produce.TopicProduceData(name=place[0], partition_data=[data])],
    )
