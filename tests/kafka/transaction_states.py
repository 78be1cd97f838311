"""Every request of a transactional client, in every state of its transactional id, by every caller: what is answered.

Knows brokers by their address only, so that Apache Kafka can be asked the same.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k00_produce, k28_txn_offset_commit
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k10_find_coordinator import FindCoordinatorRequest
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from exacta.protocol.kafka.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from exacta.protocol.kafka.messages.k26_end_txn import EndTxnRequest
from exacta.protocol.kafka.messages.k65_describe_transactions import DescribeTransactionsRequest
from tests.kafka.wire import Wire, batch

Pair = tuple[int, int]
NONE = ErrorCode.NONE
PATIENCE_S = 20.0
NOT_YET = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_ENOUGH_REPLICAS,  # the same, to older clients, by Produce
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)
_ids = itertools.count()


class Id:
    """One transactional id, and the pairs that it has had."""

    def __init__(self, wire: Wire, topic: str) -> None:
        self.wire = wire
        self.topic = topic
        self.name = f"{topic}-{next(_ids)}"
        self.present: Pair = (-1, -1)
        self.before: Pair = (-1, -1)
        self.sequences: dict[Pair, int] = {}

    def ask(self, call: Callable[[], tuple[ErrorCode, Any]]) -> tuple[ErrorCode, Any]:
        """Ask until the answer is one: Kafka tells clients to come again while it ends a transaction."""
        end = time.monotonic() + PATIENCE_S
        while (answered := call())[0] in NOT_YET and time.monotonic() < end:
            time.sleep(0.01)
        return answered

    def init(self, version: int, pair: Pair = (-1, -1), *, keep: bool = False) -> tuple[ErrorCode, Any]:
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=60_000,
            producer_id=pair[0],
            producer_epoch=pair[1],
            enable_2pc=keep,
            keep_prepared_txn=keep,
        )
        answer = self.wire.ask(request, version)
        return ErrorCode(answer.error_code), answer

    def add_partitions(self, version: int, pair: Pair) -> tuple[ErrorCode, Any]:
        topics = [AddPartitionsToTxnTopic(name=self.topic, partitions=[0])]
        if version >= 4:
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=self.name, producer_id=pair[0], producer_epoch=pair[1], topics=topics
            )
            answer = self.wire.ask(AddPartitionsToTxnRequest(transactions=[transaction]), version)
            (result,) = answer.results_by_transaction
            return ErrorCode(result.topic_results[0].results_by_partition[0].partition_error_code), answer
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=pair[0],
            v3_and_below_producer_epoch=pair[1],
            v3_and_below_topics=topics,
        )
        answer = self.wire.ask(request, version)
        return ErrorCode(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code), answer

    def add_offsets(self, version: int, pair: Pair) -> tuple[ErrorCode, Any]:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name, producer_id=pair[0], producer_epoch=pair[1], group_id=self.name
        )
        answer = self.wire.ask(request, version)
        return ErrorCode(answer.error_code), answer

    def produce(self, version: int, pair: Pair) -> tuple[ErrorCode, Any]:
        sequence = self.sequences.get(pair, 0)
        records = batch(
            b"v",
            producer_id=pair[0],
            producer_epoch=pair[1],
            base_sequence=sequence,
            transactional=True,
            timestamp_ms=time.time_ns() // 1_000_000,
        )
        data = k00_produce.PartitionProduceData(index=0, records=records)
        topic = k00_produce.TopicProduceData(name=self.topic, partition_data=[data])
        request = k00_produce.ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=10_000, topic_data=[topic])
        answer = self.wire.ask(request, version).responses[0].partition_responses[0]
        if answer.error_code == NONE:
            self.sequences[pair] = sequence + 1
        return ErrorCode(answer.error_code), answer

    def commit_offsets(self, version: int, pair: Pair) -> tuple[ErrorCode, Any]:
        partition = k28_txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topic = k28_txn_offset_commit.TxnOffsetCommitRequestTopic(name=self.topic, partitions=[partition])
        request = k28_txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=self.name,
            producer_id=pair[0],
            producer_epoch=pair[1],
            topics=[topic],
        )
        answer = self.wire.ask(request, version).topics[0].partitions[0]
        return ErrorCode(answer.error_code), answer

    def end(self, version: int, pair: Pair, *, commit: bool) -> tuple[ErrorCode, Any]:
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=pair[0], producer_epoch=pair[1], committed=commit
        )
        answer = self.wire.ask(request, version)
        return ErrorCode(answer.error_code), answer

    # --- how it gets into a state ------------------------------------------------------------------------------------

    def must(self, call: Callable[[], tuple[ErrorCode, Any]]) -> Any:
        """Ask for what must succeed."""
        code, answer = self.ask(call)
        assert code == NONE, code
        return answer

    def bind(self, *, keep: bool = False) -> None:
        """Initialise, as another instance would."""
        bound = self.must(lambda: self.init(6 if keep else 4, keep=keep))
        self.before, self.present = self.present, (bound.producer_id, bound.producer_epoch)

    def begin(self) -> None:
        """Open a transaction with a batch and an offset in it."""
        self.must(lambda: self.add_partitions(3, self.present))
        self.must(lambda: self.produce(11, self.present))
        self.must(lambda: self.add_offsets(3, self.present))
        self.must(lambda: self.commit_offsets(4, self.present))

    def finish(self, version: int, *, commit: bool) -> None:
        """End it, and have what version 2 gives."""
        ended = self.must(lambda: self.end(version, self.present, commit=commit))
        if version >= 5:
            self.before, self.present = self.present, (ended.producer_id, ended.producer_epoch)
        self.must(self.whether_ended)

    def whether_ended(self) -> tuple[ErrorCode, Any]:
        """Kafka answers an end before its markers are written, and until then other requests otherwise."""
        answer = self.wire.ask(DescribeTransactionsRequest(transactional_ids=[self.name]), 0)
        (found,) = answer.transaction_states
        ended = found.transaction_state.startswith("Complete")
        return (NONE if ended else ErrorCode.CONCURRENT_TRANSACTIONS), found


def _bound(it: Id) -> None:
    it.bind()
    it.bind()


def _ongoing(it: Id) -> None:
    _bound(it)
    it.begin()


def _ended(version: int, *, commit: bool) -> Callable[[Id], None]:
    def reach(it: Id) -> None:
        _ongoing(it)
        it.finish(version, commit=commit)

    return reach


def _prepared(it: Id) -> None:
    it.bind(keep=True)
    it.begin()
    it.bind(keep=True)


STATES: dict[str, Callable[[Id], None]] = {
    "unknown": lambda it: None,
    "empty": _bound,
    "ongoing": _ongoing,
    "committed by 1": _ended(4, commit=True),
    "aborted by 1": _ended(4, commit=False),
    "committed by 2": _ended(5, commit=True),
    "aborted by 2": _ended(5, commit=False),
    "prepared": _prepared,
}
"""How a transactional id comes to be there. By 1, by 2: ended by EndTxn of this version of the transaction protocol."""

REQUESTS: dict[str, Callable[[Id, Pair], tuple[ErrorCode, Any]]] = {
    "InitProducerId 3": lambda it, pair: it.init(3, pair),
    "InitProducerId 4": lambda it, pair: it.init(4, pair),
    "AddPartitionsToTxn 1": lambda it, pair: it.add_partitions(1, pair),
    "AddPartitionsToTxn 3": lambda it, pair: it.add_partitions(3, pair),
    "AddPartitionsToTxn 5": lambda it, pair: it.add_partitions(5, pair),
    "AddOffsetsToTxn 1": lambda it, pair: it.add_offsets(1, pair),
    "AddOffsetsToTxn 4": lambda it, pair: it.add_offsets(4, pair),
    "Produce 11": lambda it, pair: it.produce(11, pair),
    "Produce 12": lambda it, pair: it.produce(12, pair),
    "TxnOffsetCommit 3": lambda it, pair: it.commit_offsets(3, pair),
    "TxnOffsetCommit 4": lambda it, pair: it.commit_offsets(4, pair),
    "TxnOffsetCommit 5": lambda it, pair: it.commit_offsets(5, pair),
    "EndTxn 1, commit": lambda it, pair: it.end(1, pair, commit=True),
    "EndTxn 1, abort": lambda it, pair: it.end(1, pair, commit=False),
    "EndTxn 4, commit": lambda it, pair: it.end(4, pair, commit=True),
    "EndTxn 4, abort": lambda it, pair: it.end(4, pair, commit=False),
    "EndTxn 5, commit": lambda it, pair: it.end(5, pair, commit=True),
    "EndTxn 5, abort": lambda it, pair: it.end(5, pair, commit=False),
}
"""By the names that `website.pages.transaction_errors` has for them."""

CALLERS = ("present", "before", "stranger")
"""Who presents the pair that the id has now, the one before, or somebody else's."""


def _found(wire: Wire, request: FindCoordinatorRequest) -> tuple[ErrorCode, None]:
    return ErrorCode(wire.ask(request, 4).coordinators[0].error_code), None


def new_topic(wire: Wire) -> str:
    """Make a topic, and wait for the coordinators."""
    topic = f"t{time.time_ns()}"
    it = Id(wire, topic)
    metadata = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)
    it.must(lambda: (ErrorCode(wire.ask(metadata, 9).topics[0].error_code), None))
    for kind in (0, 1):
        it.must(partial(_found, wire, FindCoordinatorRequest(key_type=kind, coordinator_keys=[topic])))
    return topic


def answer(wire: Wire, topic: str, request: str, state: str, caller: str) -> ErrorCode:
    """Bring a new transactional id into the state, and let the caller ask."""
    it, other = Id(wire, topic), Id(wire, topic)
    STATES[state](it)
    other.bind()
    pair = {"present": it.present, "before": it.before, "stranger": other.present}[caller]
    return it.ask(lambda: REQUESTS[request](it, pair))[0]


def can_be(state: str, caller: str) -> bool:
    """Whether there is such a caller: an unknown id has no pairs."""
    return state != "unknown" or caller == "stranger"
