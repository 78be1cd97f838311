"""Fetch from a follower that is behind, whose log is a real replica: it shows a prefix, and each transaction whole."""

from typing import Any

import pytest

from exacta.ports.cluster import Node
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import (
    k00_produce,
    k01_fetch,
    k03_metadata,
    k22_init_producer_id,
    k24_add_partitions_to_txn,
    k26_end_txn,
)
from tests.kafka.by_hand import Broker, Client
from tests.kafka.following import FOLLOWER, LEADER, Known
from tests.kafka.wire import batch, values_in

NODES = [Node(LEADER, None, {"PLAINTEXT": ("h", 1)}), Node(FOLLOWER, None, {"PLAINTEXT": ("h", 2)})]
NONE = ErrorCode.NONE


class Two:
    """A leader with the topic `t`, which its follower has followed."""

    def __init__(self) -> None:
        self.leader = Broker(cluster=Known(LEADER, NODES[0], NODES))
        self.follower = Broker(follows=self.leader, cluster=Known(FOLLOWER, NODES[0], NODES))
        self.at_leader, self.at_follower = self.leader.connect(), self.follower.connect()
        self.ask(k03_metadata.MetadataRequest(topics=[k03_metadata.MetadataRequestTopic(name="t")]), 9)
        self.follower.follower.deliver_new()

    def ask(self, message: Any, version: int, client: Client | None = None) -> Any:
        client = client or self.at_leader
        sent = client.send(message, version)
        self.leader.settle()
        [(correlation_id, answer)] = client.answers()
        assert correlation_id == sent
        return answer

    def produce(self, value: bytes, **more: Any) -> None:
        transactional_id = "x" if more else None
        data = k00_produce.PartitionProduceData(index=0, records=batch(value, **more))
        topics = [k00_produce.TopicProduceData(name="t", partition_data=[data])]
        request = k00_produce.ProduceRequest(acks=-1, transactional_id=transactional_id, topic_data=topics)
        assert self.ask(request, 9).responses[0].partition_responses[0].error_code == NONE

    def fetch(self, offset: int, *, committed: bool = False, wait_ms: int = 0) -> k01_fetch.FetchRequest:
        partition = k01_fetch.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        return k01_fetch.FetchRequest(
            topics=[k01_fetch.FetchTopic(topic="t", partitions=[partition])],
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=int(committed),
        )

    def read(self, offset: int, *, committed: bool = False) -> tuple[int, int, list[bytes]]:
        """Return error, high watermark and values, as the follower says them."""
        answer = self.ask(self.fetch(offset, committed=committed), 12, self.at_follower)
        [partition] = answer.responses[0].partitions
        return partition.error_code, partition.high_watermark, values_in(partition.records)


@pytest.fixture
def two() -> Two:
    return Two()


def test_it_shows_what_it_has_followed(two: Two) -> None:
    for value in (b"a", b"b"):
        two.produce(value)
    assert two.read(0) == (NONE, 0, [])
    two.follower.follower.deliver_new(1)
    assert two.read(0) == (NONE, 1, [b"a"])
    two.follower.follower.deliver_new()
    assert two.read(0) == (NONE, 2, [b"a", b"b"])


def test_it_catches_up_for_an_offset_beyond(two: Two) -> None:
    for value in (b"a", b"b"):
        two.produce(value)
    assert two.read(1) == (NONE, 2, [b"b"])
    assert two.read(3)[0] == ErrorCode.OFFSET_NOT_AVAILABLE


def test_a_fetch_that_waits_is_answered_when_it_has_followed(two: Two) -> None:
    two.at_follower.send(two.fetch(0, wait_ms=30_000), 12)
    two.leader.settle()
    two.produce(b"a")
    assert two.at_follower.answers() == []
    two.follower.follower.deliver_new()
    two.leader.settle()
    [(_, answer)] = two.at_follower.answers()
    assert values_in(answer.responses[0].partitions[0].records) == [b"a"]


def test_a_transaction_is_shown_whole_or_not_at_all(two: Two) -> None:
    bound = two.ask(k22_init_producer_id.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000), 4)
    pair = {"producer_id": bound.producer_id, "producer_epoch": bound.producer_epoch}
    topics = [k24_add_partitions_to_txn.AddPartitionsToTxnTopic(name="t", partitions=[0])]
    added = k24_add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=bound.producer_id,
        v3_and_below_producer_epoch=bound.producer_epoch,
        v3_and_below_topics=topics,
    )
    two.ask(added, 3)
    for sequence, value in enumerate((b"a", b"b")):
        two.produce(value, **pair, base_sequence=sequence, transactional=True)
    two.ask(k26_end_txn.EndTxnRequest(transactional_id="x", **pair, committed=True), 3)
    seen = []
    while two.follower.follower.position < two.leader.storage.position:
        two.follower.follower.deliver_new(1)
        seen.append(two.read(0, committed=True)[2])
    assert seen[-1] == [b"a", b"b"]
    assert all(values in ([], [b"a", b"b"]) for values in seen)


def test_metadata_knows_what_was_created_before_it_was_asked(two: Two) -> None:
    topics = [k03_metadata.MetadataRequestTopic(name="u")]
    two.ask(k03_metadata.MetadataRequest(topics=topics), 9)
    told = two.ask(k03_metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=False), 9, two.at_follower)
    assert [(each.name, each.error_code) for each in told.topics] == [("u", NONE)]
