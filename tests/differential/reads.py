"""What readers, tools and brokers ask in the middle of it: offsets, records, who writes, what is open, what belongs.

An offset is named by one that a batch was answered with (`of`: which one of this sequence, counted from the last), or
by an end of the partition, and by what is added to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages import (
    k01_fetch,
    k02_list_offsets,
    k23_offset_for_leader_epoch,
    k24_add_partitions_to_txn,
    k61_describe_producers,
    k65_describe_transactions,
    k66_list_transactions,
)
from exacta.protocol.kafka.records import iter_batches
from tests.differential.calls import Answer, Call, Place, name_of, sends
from tests.differential.members import versions
from tests.differential.side import NOBODY, Side
from tests.differential.steps import CLIENTS, Step, ages, usual
from tests.differential.topics import telling
from tests.differential.transactions import of_first

TIME = 0
"""A special timestamp of ours: a time of this sequence."""
_NOWHERE = 7
"""A partition that there is not."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ListOffsets(Step):
    """ListOffsets by a special timestamp, or by a time (`after` the sequence's beginning)."""

    partition: int
    committed: bool
    timestamp: int
    after: int = 0
    leader_epoch: int = -1


@dataclass(frozen=True, kw_only=True, repr=False)
class EndOfEpoch(Step):
    """OffsetForLeaderEpoch."""

    partition: int
    epoch: int
    leader_epoch: int = -1


@dataclass(frozen=True, kw_only=True, repr=False)
class Fetch(Step):
    """Fetch from a batch that was answered, or from an end ("start", "end")."""

    partition: int
    of: int | str
    plus: int
    committed: bool
    max_bytes: int = 1 << 20
    leader_epoch: int = -1


@dataclass(frozen=True, kw_only=True, repr=False)
class DescribeProducers(Step):
    """DescribeProducers."""

    partitions: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class DescribeTransactions(Step):
    """DescribeTransactions of a client, or of nobody."""

    known: bool = True


@dataclass(frozen=True, kw_only=True, repr=False)
class ListTransactions(Step):
    """ListTransactions."""

    states: tuple[str, ...] = ()
    of_producer: bool = False
    open_for_ms: int = -1
    pattern: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class AddPartitionsOfSeveral(Step):
    """AddPartitionsToTxn as brokers send it: of several transactions, to be extended or only looked at."""

    others: tuple[tuple[str, tuple[int, ...], bool], ...]
    """Client, partitions, and whether it is only looked at."""


# --- how they are sent ------------------------------------------------------------------------------------------------


@sends(ListOffsets)
def list_offsets(side: Side, step: ListOffsets) -> Call:
    """Make a ListOffsets."""
    wanted = k02_list_offsets.ListOffsetsPartition(
        partition_index=step.partition,
        current_leader_epoch=step.leader_epoch,
        timestamp=step.timestamp if step.timestamp != TIME else side.first_timestamp_ms + step.after,
    )
    request = k02_list_offsets.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(step.committed),
        topics=[k02_list_offsets.ListOffsetsTopic(name=side.topic, partitions=[wanted])],
    )

    def describe(reply: Any) -> Answer:
        answer = reply.topics[0].partitions[0]
        place = Place(step.partition, answer.offset) if answer.offset >= 0 else answer.offset
        # What is older than this sequence may be a marker, of which each broker has its own.
        after = max(answer.timestamp - side.first_timestamp_ms, -1) if answer.timestamp >= 0 else answer.timestamp
        return (name_of(answer.error_code), place, after, answer.leader_epoch)

    return Call(request=request, version=step.version, code=of_first, describe=describe)


@sends(EndOfEpoch)
def end_of_epoch(side: Side, step: EndOfEpoch) -> Call:
    """Make an OffsetForLeaderEpoch."""
    wanted = k23_offset_for_leader_epoch.OffsetForLeaderPartition(
        partition=step.partition, current_leader_epoch=step.leader_epoch, leader_epoch=step.epoch
    )
    topic = k23_offset_for_leader_epoch.OffsetForLeaderTopic(topic=side.topic, partitions=[wanted])
    request = k23_offset_for_leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])

    def describe(reply: Any) -> Answer:
        answer = reply.topics[0].partitions[0]
        place = Place(step.partition, answer.end_offset) if answer.end_offset >= 0 else answer.end_offset
        return (name_of(answer.error_code), answer.leader_epoch, place)

    return Call(request=request, version=step.version, code=of_first, describe=describe)


@sends(Fetch)
def fetch(side: Side, step: Fetch) -> Answer:
    """Fetch, on and on until there is a batch of records or nothing more; tell of what came last."""
    offset = side.offset(step.partition, step.of) + step.plus
    while True:
        answer = _fetched(side, step, offset)
        batches = [header for header, _ in iter_batches(bytes(answer.records or b""))]
        if not batches or not all(header.control for header in batches):
            break
        offset = batches[-1].last_offset + 1
    high_watermark = answer.high_watermark
    if step.committed:
        # Exacta's is that of what is durable. Who reads uncommitted records brings the sync forward; who reads
        # committed ones is told of a moment before, since nothing that it may read hangs on it (decision 0016).
        side.end_offset(step.partition, committed=False)
        high_watermark = _fetched(side, step, offset).high_watermark
    upto = batches[-1].last_offset + 1 if batches else offset
    aborted = [
        (who, Place(step.partition, entry.first_offset))
        for entry in answer.aborted_transactions or ()
        if (who := side.who(entry.producer_id)) != NOBODY and entry.first_offset < upto
    ]
    ends = tuple(Place(step.partition, end) if end >= 0 else end for end in (high_watermark, answer.last_stable_offset))
    records = tuple(side.described(header) for header in batches if not header.control)
    return (name_of(answer.error_code), *ends, answer.log_start_offset, records, tuple(sorted(aborted)))


def _fetched(side: Side, step: Fetch, offset: int) -> Any:
    wanted = k01_fetch.FetchPartition(
        partition=step.partition,
        fetch_offset=offset,
        partition_max_bytes=step.max_bytes,
        current_leader_epoch=step.leader_epoch,
    )
    topics = [k01_fetch.FetchTopic(topic=side.topic, partitions=[wanted])]
    request = k01_fetch.FetchRequest(
        topics=topics, isolation_level=int(step.committed), max_bytes=max(1, step.max_bytes), min_bytes=0
    )
    return side.wire.ask(request, step.version).responses[0].partitions[0]


@sends(DescribeProducers)
def describe_producers(side: Side, step: DescribeProducers) -> Call:
    """Make a DescribeProducers."""
    topic = k61_describe_producers.TopicRequest(name=side.topic, partition_indexes=list(step.partitions))
    request = k61_describe_producers.DescribeProducersRequest(topics=[topic])

    def of_partition(partition: Any) -> Answer:
        producers = [
            (
                who,
                side.which(who, (each.producer_id, each.producer_epoch)),
                each.last_sequence,
                Place(partition.partition_index, each.current_txn_start_offset),
            )
            for each in partition.active_producers
            # With nothing open: a marker of a higher epoch makes Kafka forget the last sequence, nobody needs it.
            if (who := side.who(each.producer_id)) != NOBODY and each.current_txn_start_offset >= 0
        ]
        return (partition.partition_index, name_of(partition.error_code), *sorted(producers))

    def describe(reply: Any) -> Answer:
        partitions = sorted(of_partition(each) for each in reply.topics[0].partitions)
        return (partitions[0][1], *partitions)

    return Call(request=request, version=step.version, code=of_first, describe=describe)


@sends(DescribeTransactions)
def describe_transactions(side: Side, step: DescribeTransactions) -> Call:
    """Make a DescribeTransactions."""
    name = side.transactional_id(step.client) if step.known else f"{side.name}-nobody"
    request = k65_describe_transactions.DescribeTransactionsRequest(transactional_ids=[name])

    def describe(reply: Any) -> Answer:
        found = reply.transaction_states[0]
        return (
            name_of(found.error_code),
            found.transaction_state,
            found.transaction_timeout_ms,
            found.transaction_start_time_ms > 0,
            side.which(step.client, (found.producer_id, found.producer_epoch)),
            # Where a group's offsets lie is Kafka's own affair.
            *sorted((topic.topic == side.topic, *sorted(topic.partitions)) for topic in _not_offsets(found.topics)),
        )

    return Call(
        request=request,
        version=step.version,
        code=lambda reply: reply.transaction_states[0].error_code,
        describe=describe,
    )


def _not_offsets(topics: Any) -> list[Any]:
    return [topic for topic in topics if topic.topic != "__consumer_offsets"]


@sends(ListTransactions)
def list_transactions(side: Side, step: ListTransactions) -> Call:
    """Make a ListTransactions."""
    request = k66_list_transactions.ListTransactionsRequest(
        state_filters=list(step.states),
        producer_id_filters=[side.pair(step.client, step.age)[0]] if step.of_producer else [],
        duration_filter=step.open_for_ms,
        transactional_id_pattern=step.pattern and step.pattern.replace("$name", side.name),
    )

    def describe(reply: Any) -> Answer:
        listed = [
            (each.transactional_id, side.who(each.producer_id), each.transaction_state)
            for each in reply.transaction_states
            if each.transactional_id.startswith(f"{side.name}-")
        ]
        return (name_of(reply.error_code), tuple(sorted(reply.unknown_state_filters)), *sorted(listed))

    return Call(request=request, version=step.version, describe=describe)


@sends(AddPartitionsOfSeveral)
def add_partitions_of_several(side: Side, step: AddPartitionsOfSeveral) -> Call:
    """Make an AddPartitionsToTxn of version 4 and later."""
    transactions = []
    for client, partitions, verify_only in step.others:
        producer_id, epoch = side.pair(client, step.age)
        topics = [k24_add_partitions_to_txn.AddPartitionsToTxnTopic(name=side.topic, partitions=list(partitions))]
        transactions.append(
            k24_add_partitions_to_txn.AddPartitionsToTxnTransaction(
                transactional_id=side.transactional_id(client),
                producer_id=producer_id,
                producer_epoch=epoch,
                verify_only=verify_only,
                topics=topics,
            )
        )
    request = k24_add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=transactions)

    def describe(reply: Any) -> Answer:
        results = [
            (
                each.transactional_id,
                *sorted(
                    (partition.partition_index, name_of(partition.partition_error_code))
                    for topic in each.topic_results
                    for partition in topic.results_by_partition
                ),
            )
            for each in reply.results_by_transaction
        ]
        return (name_of(reply.error_code), *sorted(results))

    return Call(request=request, version=step.version, describe=describe)


# --- sequences --------------------------------------------------------------------------------------------------------

_client = st.sampled_from(CLIENTS)
_partition = st.sampled_from([0, 0, 0, 1, 1, 1, _NOWHERE])
_leader_epoch = st.sampled_from([-1] * 8 + [-2, 0, 0, 1, 7])
_states = st.sampled_from(
    [(), (), ("Ongoing",), ("CompleteAbort", "Empty"), ("Nonsense", "CompleteCommit"), ("ongoing",)]
)

reading = st.one_of(
    st.builds(
        ListOffsets,
        client=_client,
        version=versions(ApiKey.LIST_OFFSETS, 1, 11),
        partition=_partition,
        committed=st.booleans(),
        timestamp=st.sampled_from([TIME, TIME, TIME, -1, -1, -2, -3, -4, -5, -6, -7]),
        after=st.integers(-1, 9),
        leader_epoch=_leader_epoch,
    ),
    st.builds(
        EndOfEpoch,
        client=_client,
        version=versions(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4),
        partition=_partition,
        epoch=st.sampled_from([0, 0, 0, -1, 1, 7]),
        leader_epoch=_leader_epoch,
    ),
    st.builds(
        Fetch,
        client=_client,
        version=versions(ApiKey.FETCH, 4, 12),
        partition=_partition,
        of=st.sampled_from([0, 0, 0, 1, 2, 3, "end"]),
        plus=st.sampled_from([0, 0, 0, 0, 1, 1000]),
        committed=st.booleans(),
        max_bytes=st.sampled_from([1 << 20, 1 << 20, 1 << 20, 1, 0, 100]),
        leader_epoch=_leader_epoch,
    ),
    st.builds(
        Fetch,
        client=_client,
        version=versions(ApiKey.FETCH, 4, 12),
        partition=_partition,
        of=st.just("start"),
        plus=st.sampled_from([-1, -100]),
        committed=st.booleans(),
    ),
    st.builds(
        DescribeProducers,
        client=_client,
        version=st.just(0),
        partitions=st.sampled_from([(0,), (1,), (0, 1), (_NOWHERE,), (0, _NOWHERE)]),
    ),
    st.builds(DescribeTransactions, client=_client, version=st.just(0), known=st.sampled_from([True] * 5 + [False])),
    st.builds(
        ListTransactions,
        client=_client,
        version=versions(ApiKey.LIST_TRANSACTIONS, 0, 2),
        states=_states,
        of_producer=st.booleans(),
        open_for_ms=st.sampled_from([-1, -1, 10**9]),
        pattern=st.sampled_from([None, None, "", "$name-.*", "$name-a", "(", "[z-a]", "$name"]),
    ),
    st.builds(
        AddPartitionsOfSeveral,
        client=_client,
        age=ages,
        version=versions(ApiKey.ADD_PARTITIONS_TO_TXN, 4, 5),
        others=st.lists(
            st.tuples(_client, st.sampled_from([(0,), (1,), (0, 1), (_NOWHERE,), (0, _NOWHERE)]), st.booleans()),
            min_size=1,
            max_size=2,
            unique_by=lambda each: each[0],
        ).map(tuple),
    ),
)

sequences = st.lists(st.one_of(usual, reading, telling), min_size=1, max_size=25)
"""Transactions, looked at all the time."""
