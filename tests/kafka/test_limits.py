"""Bounds against misuse over the wire: the options reach the core, and clients get codes that are permanent to them."""

from typing import Any

import pytest

from exacta.protocol.kafka.errors import RETRIABLE, ErrorCode
from exacta.protocol.kafka.messages import k08_offset_commit as commit
from exacta.protocol.kafka.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.schema import Message
from tests.kafka.test_ask_lag import commit_offset
from tests.kafka.test_topic_ids import create
from tests.kafka.wire import Wire, front


def init(wire: Wire, transactional_id: str) -> int:
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    code: int = wire.ask(request, 4).error_code
    return code


def test_transactional_ids() -> None:
    with front(max_transactional_ids=2) as broker:
        wire = broker.connect()
        assert [init(wire, each) for each in "abca"] == [0, 0, ErrorCode.POLICY_VIOLATION, 0]


def test_groups() -> None:
    def committed(wire: Wire, group: str) -> int:
        partition = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
        topic = commit.OffsetCommitRequestTopic(name="t", partitions=[partition])
        answer: Any = wire.ask(commit.OffsetCommitRequest(group_id=group, topics=[topic]), 6)
        code: int = answer.topics[0].partitions[0].error_code
        return code

    with front(max_groups=1) as broker:
        wire = broker.connect()
        create(wire)
        commit_offset(wire, 0, "a")
        assert [committed(wire, group) for group in "ab"] == [0, ErrorCode.POLICY_VIOLATION]


def test_partitions() -> None:
    def created(wire: Wire, name: str, count: int) -> int:
        topic = CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        request: Message = CreateTopicsRequest(topics=[topic])
        code: int = wire.ask(request, 7).topics[0].error_code
        return code

    with front(max_partitions=3) as broker:
        wire = broker.connect()
        assert [created(wire, "a", 2), created(wire, "b", 2), created(wire, "b", 1)] == [
            0,
            ErrorCode.INVALID_PARTITIONS,
            0,
        ]


@pytest.mark.parametrize("code", [ErrorCode.POLICY_VIOLATION, ErrorCode.INVALID_PARTITIONS])
def test_nobody_tries_again_for_ever(code: ErrorCode) -> None:
    assert code not in RETRIABLE


def test_what_a_member_says_of_itself() -> None:
    """45 MiB of it would be in memory, in the journal and in each snapshot for as long as the session lasts."""

    def joined(wire: Wire, size: int) -> int:
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=bytes(size))],
        )
        code: int = wire.ask(request, 3).error_code
        return code

    with front() as broker:
        wire = broker.connect()
        assert [joined(wire, 45 << 20), joined(wire, 1_000)] == [ErrorCode.POLICY_VIOLATION, 0]
