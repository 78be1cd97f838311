"""One request is bounded: how many elements it has, and how often it has one thing described (`request_size.py`)."""

from typing import Any

import pytest
from msgspec import json

from exacta.core.groups.consumer_words import subscribed_topics
from exacta.core.values.limits import Limits
from exacta.kafka.handlers.k19_create_topics import MOST_AT_ONCE
from exacta.kafka.handlers.k17792_ask import LONGEST_QUESTION
from exacta.kafka.request_size import FEWEST_ELEMENTS, most_elements
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k03_metadata,
    k09_offset_fetch,
    k15_describe_groups,
    k19_create_topics,
    k21_delete_records,
    k27_write_txn_markers,
    k32_describe_configs,
    k43_elect_leaders,
    k45_alter_partition_reassignments,
    k61_describe_producers,
    k65_describe_transactions,
    k69_consumer_group_describe,
    k17784_end_transactions,
)
from exacta.protocol.kafka.messages.k17792_ask import AskRequest
from exacta.protocol.kafka.schema import Message
from exacta.readmodel.transactions import AskTransactions
from tests.kafka.asking import explain, question
from tests.kafka.test_topic_ids import create
from tests.kafka.wire import Wire, front


def markers(count: int) -> Message:
    topic = k27_write_txn_markers.WritableTxnMarkerTopic(name="t", partition_indexes=[0] * count)
    marker = k27_write_txn_markers.WritableTxnMarker(
        producer_id=0, producer_epoch=0, transaction_result=False, topics=[topic]
    )
    return k27_write_txn_markers.WriteTxnMarkersRequest(markers=[marker])


def records(count: int) -> Message:
    partition = k21_delete_records.DeleteRecordsPartition(partition_index=0, offset=0)
    topic = k21_delete_records.DeleteRecordsTopic(name="t", partitions=[partition] * count)
    return k21_delete_records.DeleteRecordsRequest(topics=[topic])


@pytest.mark.parametrize(("request_of", "version", "others"), [(markers, 1, 2), (records, 1, 1), (records, 2, 1)])
def test_too_many_elements_end_the_connection(request_of: Any, version: int, others: int) -> None:
    with front() as broker:
        wire = broker.connect()
        wire.send(request_of(FEWEST_ELEMENTS + 1 - others), version)
        assert wire.is_closed()
        assert broker.connect().ask(request_of(3), version)


@pytest.mark.parametrize(
    ("request_", "of_all"),
    [
        (AskRequest(question=b'{"type":"lag","group":"g"}'.ljust(LONGEST_QUESTION + 1)), "error_code"),
        (
            k17784_end_transactions.EndTransactionsRequest(
                transactions=[
                    k17784_end_transactions.TransactionToEnd(transactional_id="x", producer_id=0, producer_epoch=0)
                ]
                * (FEWEST_ELEMENTS + 1)
            ),
            "error_code",
        ),
    ],
    ids=["question", "ends"],
)
def test_too_many_elements_are_refused_by_a_code_where_one_is_an_answer(
    wire: Wire, request_: Message, of_all: str
) -> None:
    assert getattr(wire.ask(request_, 0), of_all) == ErrorCode.INVALID_REQUEST
    assert explain(wire) == ()  # the connection lives


def test_as_many_as_there_may_be_partitions_are_answered() -> None:
    assert most_elements(Limits()) == FEWEST_ELEMENTS
    assert most_elements(Limits(max_partitions=500_000)) == 1_500_000
    with front() as broker:
        wire = broker.connect()
        topic = k09_offset_fetch.OffsetFetchRequestTopic(name="t", partition_indexes=list(range(FEWEST_ELEMENTS - 1)))
        answer = wire.ask(k09_offset_fetch.OffsetFetchRequest(group_id="g", topics=[topic]), 6)
        assert len(answer.topics[0].partitions) == FEWEST_ELEMENTS - 1


def offsets(answer: Any) -> list[int]:
    return [each.partition_index for group in answer.groups for topic in group.topics for each in topic.partitions]


OFFSETS = k09_offset_fetch.OffsetFetchRequestTopics(name="t", partition_indexes=[0, 0, 1])

ONCE: list[tuple[Message, int, Any, list[Any]]] = [
    (
        k03_metadata.MetadataRequest(topics=[k03_metadata.MetadataRequestTopic(name=each) for each in "tut"]),
        9,
        lambda answer: [each.name for each in answer.topics],
        ["t", "u"],
    ),
    (
        k09_offset_fetch.OffsetFetchRequest(
            groups=[k09_offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=[OFFSETS, OFFSETS])]
        ),
        8,
        offsets,
        [0, 1],
    ),
    (
        k09_offset_fetch.OffsetFetchRequest(
            groups=[k09_offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None)] * 2
        ),
        8,
        lambda answer: [each.group_id for each in answer.groups],
        ["g"],
    ),
    (
        k15_describe_groups.DescribeGroupsRequest(groups=["g", "h", "g"]),
        5,
        lambda answer: [each.group_id for each in answer.groups],
        ["g", "h"],
    ),
    (
        k32_describe_configs.DescribeConfigsRequest(
            resources=[k32_describe_configs.DescribeConfigsResource(resource_type=2, resource_name="t")] * 2
        ),
        4,
        lambda answer: [each.resource_name for each in answer.results],
        ["t"],
    ),
    (
        k61_describe_producers.DescribeProducersRequest(
            topics=[k61_describe_producers.TopicRequest(name="t", partition_indexes=[0, 0, 1, 0])] * 2
        ),
        0,
        lambda answer: [each.partition_index for topic in answer.topics for each in topic.partitions],
        [0, 1],
    ),
    (
        k65_describe_transactions.DescribeTransactionsRequest(transactional_ids=["x", "y", "x"]),
        0,
        lambda answer: [each.transactional_id for each in answer.transaction_states],
        ["x", "y"],
    ),
    (
        k69_consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=["g", "h", "g"]),
        0,
        lambda answer: [each.group_id for each in answer.groups],
        ["g", "h"],
    ),
    (
        question(AskTransactions(transactional_ids=("x", "y", "x"))),
        0,
        lambda answer: [each["transactional_id"] for each in json.decode(answer.answer)["transactions"]],
        ["x", "y"],
    ),
]


@pytest.mark.parametrize(("request_", "version", "named", "once"), ONCE, ids=[type(each[0]).__name__ for each in ONCE])
def test_what_is_named_often_is_described_once(
    wire: Wire, request_: Message, version: int, named: Any, once: list[Any]
) -> None:
    create(wire)
    assert named(wire.ask(request_, version)) == once


def test_an_answer_for_each_partition_does_not_repeat_the_name_of_its_topic(wire: Wire) -> None:
    name, indexes = "n" * 30_000, list(range(100))
    elected = wire.ask(
        k43_elect_leaders.ElectLeadersRequest(
            topic_partitions=[k43_elect_leaders.TopicPartitions(topic=name, partitions=indexes)]
        ),
        2,
    )
    [topic] = elected.replica_election_results
    assert max(len(each.error_message) for each in topic.partition_result) < 100
    wanted = [
        k45_alter_partition_reassignments.ReassignablePartition(partition_index=index, replicas=[0])
        for index in indexes
    ]
    reassigned = wire.ask(
        k45_alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            topics=[k45_alter_partition_reassignments.ReassignableTopic(name=name, partitions=wanted)]
        ),
        0,
    )
    assert max(len(each.error_message) for each in reassigned.responses[0].partitions) < 100


def test_a_subscription_to_too_many_topics_is_not_read() -> None:
    one = b"\0\0\0\0\0\1\0\1t"
    most = b"\0\0" + (FEWEST_ELEMENTS - 1).to_bytes(4, "big") + b"\0\1u" * (FEWEST_ELEMENTS - 1)
    assert subscribed_topics("consumer", [one, most]) == frozenset({"t", "u"})
    assert subscribed_topics("consumer", [one, one, most]) is None


def test_too_many_topics_to_create(wire: Wire) -> None:
    def codes(count: int) -> set[ErrorCode]:
        topics = [
            k19_create_topics.CreatableTopic(name=f"t{number}", num_partitions=1, replication_factor=1)
            for number in range(count)
        ]
        answer = wire.ask(k19_create_topics.CreateTopicsRequest(topics=topics, validate_only=True), 5)
        assert len(answer.topics) == count
        return {each.error_code for each in answer.topics}

    assert codes(MOST_AT_ONCE + 1) == {ErrorCode.POLICY_VIOLATION}
    assert codes(100) == {ErrorCode.NONE}
