"""Requests and records with which the tests of overload fill a broker."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k12_heartbeat import HeartbeatRequest
from tests.kafka.by_hand import Broker
from tests.kafka.wire import batch

STALL_MS = 1_000


MB = 1 << 20


HEARTBEAT = HeartbeatRequest(group_id="g", member_id="m", generation_id=1)


Start = Callable[..., Broker]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start brokers with small budgets; at the end all clients vanish, and nothing may be left of them."""
    started: list[Broker] = []

    def starting(**options: Any) -> Broker:
        given = {"connections_max_stall_ms": STALL_MS, "queued_max_request_bytes": MB, "queued_max_response_bytes": MB}
        broker = Broker(**(given | options))
        broker.ask(broker.connect(), MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        started.append(broker)
        return broker

    yield starting
    for broker in started:
        broker.end()


def produce(*values: bytes, partition: int = 0) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch(*values))
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[data])])


def fetch(offset: int = 0, max_wait_ms: int = 0, partitions: int = 1) -> FetchRequest:
    wanted = [FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 30)] * partitions
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 30, topics=[FetchTopic(topic="t", partitions=wanted)]
    )


def fill(broker: Broker, batches: int, size: int) -> None:
    writer = broker.connect()
    for _ in range(batches):
        answer = broker.ask(writer, produce(b"x" * size), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def is_served(broker: Broker) -> bool:
    """Say whether somebody else gets small things done."""
    client = broker.connect()
    broker.ask(client, HEARTBEAT, 2)
    broker.ask(client, produce(b"small"), 9)
    return True
