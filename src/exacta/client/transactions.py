"""The transactional calls, one function each, with their requests, their answers, and the codes that are repeated.

The module owns the shapes of these requests. Every function may be repeated without harm, and repeats itself until its
deadline: `InitProducerId` bumps the epoch once more, `EndTxn` of the same outcome is answered as the first one was,
unless its producer was fenced since, adding what is already added changes nothing (KIP-98).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from exacta.client.bulk import ask_all
from exacta.client.deadline import Deadline
from exacta.client.errors import FENCED, KafkaError
from exacta.client.routing import GROUP, TRANSACTION, Client, Controller, Coordinator, Route
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from exacta.protocol.kafka.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from exacta.protocol.kafka.messages.k26_end_txn import EndTxnRequest
from exacta.protocol.kafka.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from exacta.protocol.kafka.messages.k65_describe_transactions import DescribeTransactionsRequest
from exacta.protocol.kafka.messages.k66_list_transactions import ListTransactionsRequest
from exacta.protocol.kafka.schema import Message

ONGOING = "Ongoing"
"""The state of a transactional id whose transaction is open."""
EMPTY = "Empty"
COMPLETE_COMMIT = "CompleteCommit"
"""The state of a transactional id whose last transaction was committed."""
NO_TIMEOUT_MS = 2**31 - 1
"""The time-out of a transaction that has none (KIP-939)."""


class Producer(NamedTuple):
    """One incarnation of a transactional id, or a producer without one (whose transactional id is empty)."""

    transactional_id: str
    producer_id: int
    producer_epoch: int

    @property
    def is_transactional(self) -> bool:
        """Return whether the producer writes in transactions."""
        return bool(self.transactional_id)


class TopicPartition(NamedTuple):
    """A partition by name; as a text it is `orders-0`, as Kafka's own tools write it."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class CommittedOffset(NamedTuple):
    """A group's offset for one partition, with the text that was committed beside it."""

    offset: int
    metadata: str


class TransactionDescription(NamedTuple):
    """The coordinator's knowledge of a transactional id, and the partitions that its open transaction holds.

    `start_ms` is when that transaction began, in ms since 1970, or -1 if none is open.
    """

    state: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    start_ms: int = -1
    timeout_ms: int = NO_TIMEOUT_MS

    @property
    def is_open(self) -> bool:
        """Return whether the transaction can still be ended either way."""
        return self.state == ONGOING


def init_producer_id(
    client: Client,
    transactional_id: str,
    *,
    transaction_timeout_ms: int,
    expected: Producer | None = None,
    deadline: Deadline | None = None,
) -> Producer:
    """Take over a transactional id: fence its predecessor, abort what it left open, return the new incarnation.

    With `expected` the id is taken over only from that incarnation (KIP-360). If there is another one by now, the call
    raises a fenced `KafkaError`. Apache Kafka says so too if it has just aborted a transaction of `expected` for us. If
    the other incarnation has a transaction open, Apache Kafka says so and aborts that all the same (4.4: epochs are
    compared once nothing is open).
    """
    response = client.call(
        Coordinator(TRANSACTION, transactional_id),
        InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
            producer_id=-1 if expected is None else expected.producer_id,
            producer_epoch=-1 if expected is None else expected.producer_epoch,
        ),
        what=f"taking over transactional id '{transactional_id}'",
        codes=lambda reply: (reply.error_code,),
        # An older incarnation's request that is still on its way can meet ours; the next try wins.
        also_retry=FENCED if expected is None else frozenset(),
        deadline=deadline,
    )
    return Producer(transactional_id, response.producer_id, response.producer_epoch)


def new_producer(client: Client, deadline: Deadline | None = None) -> Producer:
    """Return a new idempotent producer without a transactional id (KIP-98)."""
    response = client.call(
        Controller(),  # of several Exactas it alone gives ids, and of a Kafka it is as good as any broker
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=NO_TIMEOUT_MS),
        what="asking for a producer id",
        codes=lambda reply: (reply.error_code,),
        deadline=deadline,
    )
    return Producer("", response.producer_id, response.producer_epoch)


def add_partitions(
    client: Client, producer: Producer, partitions: Iterable[TopicPartition], deadline: Deadline | None = None
) -> None:
    """Add partitions to the transaction of `producer`, beginning it where none is open."""
    topics = [
        AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in by_topic(partitions).items()
    ]
    client.call(
        Coordinator(TRANSACTION, producer.transactional_id),
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=producer.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=topics,
        ),
        what=f"adding partitions to the transaction of '{producer.transactional_id}'",
        codes=_add_partitions_codes,
        deadline=deadline,
    )


def commit_offset(
    client: Client,
    producer: Producer,
    group: str,
    at: TopicPartition,
    committed: CommittedOffset,
    deadline: Deadline | None = None,
) -> None:
    """Commit an offset of `group` inside the transaction of `producer`: see `commit_offsets`."""
    commit_offsets(client, producer, group, {at: committed}, deadline)


def commit_offsets(
    client: Client,
    producer: Producer,
    group: str,
    offsets: Mapping[TopicPartition, CommittedOffset],
    deadline: Deadline | None = None,
) -> None:
    """Commit offsets of `group` inside the transaction of `producer`, by no member of the group (KIP-98).

    INVALID_TXN_STATE is raised, never answered by adding the group again: that would begin another transaction, and
    hide that the one which held the rows is gone.
    """
    deadline = deadline or client.deadline()
    add_group(client, producer, group, deadline)
    client.call(
        Coordinator(GROUP, group),
        _txn_offset_commit(producer, group, offsets),
        what=f"committing offsets of group '{group}' in the transaction of '{producer.transactional_id}'",
        codes=_txn_offset_commit_codes,
        deadline=deadline,
    )


def add_group(client: Client, producer: Producer, group: str, deadline: Deadline | None = None) -> None:
    """Add a group's offsets to the transaction of `producer`, beginning it where none is open."""
    client.call(
        Coordinator(TRANSACTION, producer.transactional_id),
        AddOffsetsToTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            group_id=group,
        ),
        what=f"adding group '{group}' to the transaction of '{producer.transactional_id}'",
        codes=lambda reply: (reply.error_code,),
        deadline=deadline,
    )


def end_transaction(client: Client, producer: Producer, *, commit: bool, deadline: Deadline | None = None) -> None:
    """Commit or abort the transaction of `producer`, from any process (KIP-98 §EndTxnRequest).

    Raises `KafkaError`: fenced or INVALID_TXN_STATE both mean "not by this request", and never tell whether an earlier
    one did.
    """
    client.call(
        Coordinator(TRANSACTION, producer.transactional_id),
        end_txn_request(producer, commit=commit),
        what=f"{'committing' if commit else 'aborting'} the transaction of '{producer.transactional_id}'",
        codes=lambda reply: (reply.error_code,),
        deadline=deadline,
    )


def end_transactions(
    client: Client, producers: Sequence[Producer], *, commit: bool, deadline: Deadline | None = None
) -> dict[Producer, KafkaError | None]:
    """Commit or abort many transactions at once; return for each None or the error that refused it."""
    deadline = deadline or client.deadline()
    requests: list[tuple[Route, Message]] = [
        (Coordinator(TRANSACTION, producer.transactional_id), end_txn_request(producer, commit=commit))
        for producer in producers
    ]
    outcome: dict[Producer, KafkaError | None] = {}
    for producer, reply in zip(producers, ask_all(client, requests, deadline), strict=True):
        if reply is not None and reply.error_code == ErrorCode.NONE:
            outcome[producer] = None
            continue
        try:
            end_transaction(client, producer, commit=commit, deadline=deadline)
            outcome[producer] = None
        except KafkaError as error:
            outcome[producer] = error
    return outcome


def list_transactions(
    client: Client, prefix: str, *, states: Sequence[str] = (ONGOING,), deadline: Deadline | None = None
) -> list[str]:
    """Return the transactional ids that begin with `prefix` and are in one of `states` (none: any), from all brokers.

    The pattern is for brokers that know KIP-1152. It is not sent to other brokers, which list all ids, so the ids are
    filtered here.
    """
    request = ListTransactionsRequest(state_filters=list(states), transactional_id_pattern=f"{re.escape(prefix)}.*")
    found = {
        entry.transactional_id
        for reply in client.ask_every_broker(request, what="listing open transactions", deadline=deadline)
        for entry in reply.transaction_states
        if entry.transactional_id.startswith(prefix) and (not states or entry.transaction_state in states)
    }
    return sorted(found)


def describe_transactions(
    client: Client, transactional_ids: Sequence[str], deadline: Deadline | None = None
) -> dict[str, TransactionDescription | None]:
    """Return what the coordinators know of many transactional ids at once."""
    deadline = deadline or client.deadline()
    requests: list[tuple[Route, Message]] = [
        (Coordinator(TRANSACTION, each), DescribeTransactionsRequest(transactional_ids=[each]))
        for each in transactional_ids
    ]
    found: dict[str, TransactionDescription | None] = {}
    for each, reply in zip(transactional_ids, ask_all(client, requests, deadline), strict=True):
        if reply is not None and reply.transaction_states[0].error_code == ErrorCode.NONE:
            found[each] = _description_in(reply)
        else:
            found[each] = describe_transaction(client, each, deadline)
    return found


def describe_transaction(
    client: Client, transactional_id: str, deadline: Deadline | None = None
) -> TransactionDescription | None:
    """Return what the coordinator knows of a transactional id, or None where it knows nothing."""
    response = client.call(
        Coordinator(TRANSACTION, transactional_id),
        DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        what=f"describing transactional id '{transactional_id}'",
        codes=lambda reply: (
            entry.error_code
            for entry in reply.transaction_states
            if entry.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        ),
        deadline=deadline,
    )
    return _description_in(response)


def _txn_offset_commit(
    producer: Producer, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
) -> TxnOffsetCommitRequest:
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for (topic, partition), committed in offsets.items():
        entry = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=committed.offset, committed_metadata=committed.metadata
        )
        topics.setdefault(topic, []).append(entry)
    return TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=group,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=entries) for topic, entries in topics.items()],
    )


def end_txn_request(producer: Producer, *, commit: bool) -> EndTxnRequest:
    """Return the request that commits or aborts the transaction of `producer`, in any version."""
    return EndTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=commit,
    )


def _description_in(reply: Any) -> TransactionDescription | None:
    for entry in reply.transaction_states:
        if entry.error_code == ErrorCode.NONE:
            partitions = frozenset(
                TopicPartition(topic.topic, index) for topic in entry.topics for index in topic.partitions
            )
            return TransactionDescription(
                entry.transaction_state,
                entry.producer_id,
                entry.producer_epoch,
                partitions,
                entry.transaction_start_time_ms,
                entry.transaction_timeout_ms,
            )
    return None


def by_topic(partitions: Iterable[TopicPartition]) -> Mapping[str, list[int]]:
    """Return the partitions' numbers by topic, as requests name them."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def _add_partitions_codes(reply: Any) -> list[int]:
    return [
        entry.partition_error_code
        for topic in reply.results_by_topic_v3_and_below
        for entry in topic.results_by_partition
        # Says only that another partition was refused.
        if entry.partition_error_code != ErrorCode.OPERATION_NOT_ATTEMPTED
    ]


def _txn_offset_commit_codes(reply: Any) -> list[int]:
    return [entry.error_code for topic in reply.topics for entry in topic.partitions]
