"""How the steps of transactional clients are sent, and what is compared of their answers."""

from __future__ import annotations

from typing import Any

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k00_produce,
    k02_list_offsets,
    k08_offset_commit,
    k09_offset_fetch,
    k22_init_producer_id,
    k24_add_partitions_to_txn,
    k25_add_offsets_to_txn,
    k26_end_txn,
    k28_txn_offset_commit,
)
from tests.differential.calls import Answer, Call, Place, name_of, sends
from tests.differential.side import Side
from tests.differential.steps import (
    AddGroup,
    AddPartitions,
    CommitOffsets,
    End,
    Init,
    PlainOffsets,
    Produce,
    ReadEnd,
    ReadOffsets,
)
from tests.kafka.wire import batch


@sends(Init)
def init(side: Side, step: Init) -> Call:
    """Make an InitProducerId."""
    producer_id, epoch = side.pair(step.client, step.age) if step.presents else (-1, -1)
    request = k22_init_producer_id.InitProducerIdRequest(
        transactional_id=side.transactional_id(step.client),
        transaction_timeout_ms=60_000,
        producer_id=producer_id,
        producer_epoch=epoch,
    )

    def describe(reply: Any) -> Answer:
        if reply.error_code != ErrorCode.NONE:
            return (name_of(reply.error_code),)
        return ("NONE", side.given(step.client, (reply.producer_id, reply.producer_epoch)))

    return Call(request=request, version=step.version, describe=describe)


@sends(AddPartitions)
def add_partitions(side: Side, step: AddPartitions) -> Call:
    """Make an AddPartitionsToTxn of one transaction."""
    producer_id, epoch = side.pair(step.client, step.age)
    request = k24_add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=side.transactional_id(step.client),
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[
            k24_add_partitions_to_txn.AddPartitionsToTxnTopic(name=side.topic, partitions=list(step.partitions))
        ],
    )

    def code(reply: Any) -> int:
        return reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code

    return Call(request=request, version=step.version, code=code, describe=lambda reply: (name_of(code(reply)),))


@sends(AddGroup)
def add_group(side: Side, step: AddGroup) -> Call:
    """Make an AddOffsetsToTxn."""
    producer_id, epoch = side.pair(step.client, step.age)
    request = k25_add_offsets_to_txn.AddOffsetsToTxnRequest(
        transactional_id=side.transactional_id(step.client),
        producer_id=producer_id,
        producer_epoch=epoch,
        group_id=side.group(step.group),
    )
    return Call(request=request, version=step.version, describe=lambda reply: (name_of(reply.error_code),))


@sends(Produce)
def produce(side: Side, step: Produce) -> Call:
    """Make a Produce of one batch."""
    pair = side.pair(step.client, step.age)
    key = (step.client, pair, step.partition)
    kind = (*key, step.transactional)
    sequence = max(0, side.next_sequence.get(key, 0) + step.skip)
    records = batch(
        *(b"%d" % number for number in range(step.count)),
        producer_id=pair[0],
        producer_epoch=pair[1],
        base_sequence=sequence,
        transactional=step.transactional,
        timestamp_ms=side.next_timestamp_ms(),
    )
    if step.repeat and kind in side.last_batch:
        records = side.last_batch[kind]
    data = k00_produce.PartitionProduceData(index=step.partition, records=records)
    request = k00_produce.ProduceRequest(
        transactional_id=side.transactional_id(step.client),
        acks=-1,
        timeout_ms=10_000,
        topic_data=[k00_produce.TopicProduceData(name=side.topic, partition_data=[data])],
    )

    def describe(reply: Any) -> Answer:
        answer = reply.responses[0].partition_responses[0]
        if answer.error_code != ErrorCode.NONE:
            return (name_of(answer.error_code),)
        place = Place(step.partition, answer.base_offset)
        if place not in side.places:  # else it was a repeat, which one broker may have taken, and the other refused
            side.last_batch[kind] = records
            side.next_sequence[key] = sequence + step.count
            side.places.append(place)
        return ("NONE", place)

    return Call(request=request, version=step.version, code=_produced, describe=describe)


@sends(CommitOffsets)
def commit_offsets(side: Side, step: CommitOffsets) -> Call:
    """Make a TxnOffsetCommit."""
    member = {"member_id": "gone", "generation_id": 3} if step.stale and step.version >= 3 else {}
    return commit_in_transaction(side, step, member)


def commit_in_transaction(side: Side, step: CommitOffsets, member: dict[str, Any]) -> Call:
    """Make a TxnOffsetCommit, of a member where it is given."""
    producer_id, epoch = side.pair(step.client, step.age)
    entry = k28_txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=step.offset)
    request = k28_txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=side.transactional_id(step.client),
        group_id=side.group(step.group),
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[k28_txn_offset_commit.TxnOffsetCommitRequestTopic(name=side.topic, partitions=[entry])],
        **member,
    )
    return Call(
        request=request, version=step.version, code=of_first, describe=lambda reply: (name_of(of_first(reply)),)
    )


@sends(End)
def end(side: Side, step: End) -> Call:
    """Make an EndTxn."""
    producer_id, epoch = side.pair(step.client, step.age)
    request = k26_end_txn.EndTxnRequest(
        transactional_id=side.transactional_id(step.client),
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=step.commit,
    )

    def describe(reply: Any) -> Answer:
        if reply.error_code == ErrorCode.NONE and step.version >= 5:
            return ("NONE", side.given(step.client, (reply.producer_id, reply.producer_epoch)))
        return (name_of(reply.error_code),)

    return Call(request=request, version=step.version, describe=describe, ends=True)


@sends(PlainOffsets)
def plain_offsets(side: Side, step: PlainOffsets) -> Call:
    """Make an OffsetCommit of nobody's."""
    entry = k08_offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=step.offset)
    request = k08_offset_commit.OffsetCommitRequest(
        group_id=side.group(step.group),
        topics=[k08_offset_commit.OffsetCommitRequestTopic(name=side.topic, partitions=[entry])],
    )
    return Call(
        request=request, version=step.version, code=of_first, describe=lambda reply: (name_of(of_first(reply)),)
    )


@sends(ReadOffsets)
def read_offsets(side: Side, step: ReadOffsets) -> Call:
    """Make an OffsetFetch of one partition."""
    topics = [k09_offset_fetch.OffsetFetchRequestTopic(name=side.topic, partition_indexes=[0])]
    request = k09_offset_fetch.OffsetFetchRequest(
        group_id=side.group(step.group), topics=topics, require_stable=step.stable
    )

    def describe(reply: Any) -> Answer:
        answer = reply.topics[0].partitions[0]
        return (name_of(answer.error_code), answer.committed_offset)

    return Call(request=request, version=step.version, describe=describe)


@sends(ReadEnd)
def read_end(side: Side, step: ReadEnd) -> Call:
    """Make a ListOffsets of the end."""
    wanted = k02_list_offsets.ListOffsetsPartition(partition_index=step.partition, timestamp=-1)
    request = k02_list_offsets.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(step.committed),
        topics=[k02_list_offsets.ListOffsetsTopic(name=side.topic, partitions=[wanted])],
    )

    def describe(reply: Any) -> Answer:
        answer = reply.topics[0].partitions[0]
        return (name_of(answer.error_code), Place(step.partition, answer.offset))

    return Call(request=request, version=step.version, code=of_first, describe=describe)


def _produced(reply: Any) -> int:
    return reply.responses[0].partition_responses[0].error_code


def of_first(reply: Any) -> int:
    """Return the error code of an answer's first partition."""
    return reply.topics[0].partitions[0].error_code
