"""A client that registers a group and then waits for ever is woken up by the end of its connection; no other is."""

from typing import Any

import pytest

from exacta.kafka.lost_coordinators import OFFSETS_WITHIN_SECONDS
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersionsRequest
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from exacta.protocol.kafka.messages.k26_end_txn import EndTxnRequest
from exacta.protocol.kafka.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.kafka.by_hand import Broker, Client

WITHIN_MS = int(OFFSETS_WITHIN_SECONDS * 1000)


def registered(broker: Broker, software: str = "confluent-kafka-python") -> tuple[Client, dict[str, Any]]:
    """Return a client that has registered a group, and who it is."""
    client = broker.connect()
    if software:
        named = ApiVersionsRequest(client_software_name=software, client_software_version="2.16.0")
        broker.ask(client, named, 3)
    broker.ask(client, MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=True), 9)
    bound = broker.ask(client, InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4)
    who = {"transactional_id": "x", "producer_id": bound.producer_id, "producer_epoch": bound.producer_epoch}
    assert broker.ask(client, AddOffsetsToTxnRequest(**who, group_id="g"), 3).error_code == ErrorCode.NONE
    return client, who


def offsets(who: dict[str, Any]) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return TxnOffsetCommitRequest(
        **who, group_id="g", topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])]
    )


def test_a_client_that_waits_loses_its_connection_once() -> None:
    broker = Broker()
    client, who = registered(broker)
    broker.pass_time(WITHIN_MS - 1)
    assert not client.is_closing()
    broker.pass_time(1)
    assert client.closed
    other = broker.connect()
    broker.pass_time(10 * WITHIN_MS)
    assert not other.closed
    answer = broker.ask(other, offsets(who), 3)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE, "its transaction goes on"
    broker.end()


@pytest.mark.parametrize("software", ["", "apache-kafka-java"])
def test_a_client_that_does_not_wait_so_keeps_its_connection(software: str) -> None:
    broker = Broker()
    client, _ = registered(broker, software)
    broker.pass_time(10 * WITHIN_MS)
    assert not client.closed
    broker.end()


def test_who_brings_offsets_or_ends_the_transaction_goes_on() -> None:
    for request, version in (("offsets", 3), ("end", 3)):
        broker = Broker()
        client, who = registered(broker)
        broker.pass_time(WITHIN_MS - 1)
        broker.ask(client, offsets(who) if request == "offsets" else EndTxnRequest(**who, committed=True), version)
        broker.pass_time(10 * WITHIN_MS)
        assert not client.closed
        broker.end()


def test_who_is_refused_is_not_waited_for() -> None:
    broker = Broker()
    client = broker.connect()
    refused = broker.ask(client, AddOffsetsToTxnRequest(transactional_id="who", producer_id=7, group_id="g"), 3)
    assert refused.error_code != ErrorCode.NONE
    broker.pass_time(10 * WITHIN_MS)
    assert not client.closed
    broker.end()


def test_who_is_owed_an_answer_gets_it_first() -> None:
    broker = Broker()
    client, _ = registered(broker)
    partition = FetchPartition(partition=0, partition_max_bytes=1)
    fetch = FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])], min_bytes=1, max_wait_ms=WITHIN_MS + 1)
    client.send(fetch, 11)
    broker.pass_time(WITHIN_MS)
    assert not client.is_closing()
    broker.pass_time(WITHIN_MS)
    assert [type(answer).__name__ for _, answer in client.answers()] == ["FetchResponse"]
    assert client.closed
    broker.end()
