"""OffsetDelete over the wire, and what the broker reads of a consumer's subscription."""

import struct

import pytest

from exacta.core.groups.consumer_words import subscribed_topics
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k47_offset_delete as m
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from tests.kafka.test_classic_groups import Member
from tests.kafka.test_transactions_and_groups import commit, fetched
from tests.kafka.wire import Front, Wire


def subscription(*topics: str, version: int = 1) -> bytes:
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", version, len(topics)) + names + b"user data and what else there may be"


def delete(wire: Wire, *topics: str) -> list[int]:
    request = m.OffsetDeleteRequest(
        group_id="g",
        topics=[
            m.OffsetDeleteRequestTopic(name=name, partitions=[m.OffsetDeleteRequestPartition(partition_index=0)])
            for name in topics
        ],
    )
    answer = wire.ask(request, 0)
    return [answer.error_code] if answer.error_code else [topic.partitions[0].error_code for topic in answer.topics]


@pytest.fixture(autouse=True)
def topics(wire: Wire) -> None:
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in ("t", "u")]), 9)


def test_deleting(wire: Wire) -> None:
    assert delete(wire, "t") == [ErrorCode.GROUP_ID_NOT_FOUND]
    commit(wire, ("t", 0, 7))
    assert delete(wire, "t", "nowhere") == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert fetched(wire).committed_offset == -1


def test_a_member_keeps_what_it_reads(broker: Front, wire: Wire) -> None:
    commit(wire, ("t", 0, 7), ("u", 0, 8))
    member = Member(broker, subscription=subscription("t"))
    member.send_join()
    member.receive_join()
    member.sync()
    assert delete(wire, "t", "u") == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]
    assert fetched(wire).committed_offset == 7


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ([subscription("t", "u")], {"t", "u"}),
        ([subscription("t", version=3), subscription("u", version=0)], {"t", "u"}),
        ([subscription()], set()),
        ([], set()),
        ([b""], None),
        ([subscription("t")[:7]], None),
        ([struct.pack(">hih", 0, 1, -1)], None),
        ([struct.pack(">hih", 0, 1, 1) + b"\xff"], None),
        ([struct.pack(">hi", 0, 2**31 - 1)], None),
    ],
)
def test_what_a_subscription_says(said: list[bytes], read: set[str] | None) -> None:
    assert subscribed_topics("consumer", said) == read
    assert subscribed_topics("connect", said) is None
