"""DescribeTopicPartitions: topics page by page."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from tests.kafka.test_topics import create
from tests.kafka.wire import Wire
from tests.shares import examples

Place = tuple[str, int]


def ask(wire: Wire, *names: str, limit: int = 2000, cursor: Place | None = None) -> Any:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return wire.ask(request, 0)


def page(wire: Wire, *names: str, **options: Any) -> tuple[list[tuple[str, list[int]]], Place | None]:
    """Return topics with their partitions' indexes, and where the next page begins."""
    response = ask(wire, *names, **options)
    found = [(topic.name, [each.partition_index for each in topic.partitions]) for topic in response.topics]
    cursor = response.next_cursor
    return found, None if cursor is None else (cursor.topic_name, cursor.partition_index)


@pytest.fixture
def filled(wire: Wire) -> Wire:
    """Topics of two partitions each, `b` created before `a`."""
    create(wire, name="b", num_partitions=2)
    create(wire, name="a", num_partitions=2)
    return wire


A, B = ("a", [0, 1]), ("b", [0, 1])


def test_what_is_said_of_a_partition(filled: Wire) -> None:
    [topic] = ask(filled, "a").topics
    assert (topic.error_code, len(topic.topic_id), topic.is_internal) == (ErrorCode.NONE, 16, False)
    partition = topic.partitions[1]
    assert (partition.leader_id, partition.leader_epoch) == (0, 0)
    assert (partition.replica_nodes, partition.isr_nodes) == ([0], [0])
    assert (partition.eligible_leader_replicas, partition.last_known_elr, partition.offline_replicas) == ([], [], [])


@pytest.mark.parametrize(
    ("names", "limit", "cursor", "expected"),
    [
        ("", 2000, None, ([A, B], None)),
        ("ba", 2000, None, ([A, B], None)),
        ("aa", 2000, None, ([A], None)),
        ("ab", 3, None, ([A, ("b", [0])], ("b", 1))),
        ("ab", 2, None, ([A], ("b", 0))),
        ("ab", 1, None, ([("a", [0])], ("a", 1))),
        ("ab", 0, None, ([("a", [0])], ("a", 1))),
        ("ab", -1, None, ([("a", [0])], ("a", 1))),
        ("ab", 2000, ("a", 1), ([("a", [1]), B], None)),
        ("ab", 1, ("a", 1), ([("a", [1])], ("b", 0))),
        ("ab", 2000, ("a", 7), ([("a", []), B], None)),
        ("ab", 2000, ("b", 0), ([B], None)),
        ("", 2, ("a", 1), ([("a", [1]), ("b", [0])], ("b", 1))),
        ("", 2000, ("aa", 1), ([B], None)),
    ],
)
def test_pages(filled: Wire, names: str, limit: int, cursor: Place | None, expected: Any) -> None:
    assert page(filled, *names, limit=limit, cursor=cursor) == expected


@pytest.mark.parametrize("cursor", [("nowhere", 0), ("", 0), ("a", -1)])
def test_a_cursor_must_be_one_of_the_topics(filled: Wire, cursor: Place) -> None:
    topics = ask(filled, "a", "b", cursor=cursor).topics
    assert [(topic.name, topic.error_code) for topic in topics] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.INVALID_REQUEST),
    ]


def test_what_is_not_there_takes_no_room(filled: Wire) -> None:
    topics = ask(filled, "a", "a-b", "a b", "b", limit=4).topics
    assert [(topic.name, topic.error_code, len(topic.partitions)) for topic in topics] == [
        ("a", ErrorCode.NONE, 2),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION, 0),
        ("a-b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
        ("b", ErrorCode.NONE, 2),
    ]


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(counts=st.lists(st.integers(1, 4), min_size=1, max_size=4), limit=st.integers(1, 6))
def test_pages_add_up_to_everything(wire: Wire, counts: list[int], limit: int) -> None:
    names = [f"t{number}-{count}" for number, count in enumerate(counts)]
    for name, count in zip(names, counts, strict=True):
        create(wire, name=name, num_partitions=count)
    seen: list[Place] = []
    cursor: Place | None = None
    while True:
        found, cursor = page(wire, *names, limit=limit, cursor=cursor)
        assert sum(len(indexes) for _, indexes in found) <= limit
        seen += [(name, index) for name, indexes in found for index in indexes]
        if cursor is None:
            break
    assert seen == [(name, index) for name, count in zip(names, counts, strict=True) for index in range(count)]
