"""Kafka's clients on topics that Pulsar's producers write to. `tests/one_log` has more, with both systems' clients."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

import exacta
from exacta.kafka import shared
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.records import parse_batch_header
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.kafka import wire as kafka
from tests.pulsar.wire import Wire, stored

SECONDS = 20


def fetched(broker: exacta.Broker, *, offset: int = 0, wait_ms: int = 0, version: int = 12) -> Any:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    opened = kafka.Wire((host, int(port)))
    try:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        topic = FetchTopic(topic="t", partitions=[partition])
        response = opened.ask(
            FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=1 << 20, topics=[topic]), version
        )
        return response.responses[0].partitions[0]
    finally:
        opened.socket.close()


@pytest.mark.parametrize("version", [4, 9, 12])
@pytest.mark.parametrize("offset", [0, 1])
def test_a_fetch_gets_pulsars_entries_as_records(broker: exacta.Broker, wire: Wire, version: int, offset: int) -> None:
    wire.open_producer("t")
    wire.produce(b"x")
    found = fetched(broker, offset=offset, version=version)
    records = bytes(found.records or b"")
    assert (found.error_code, bool(records)) == (ErrorCode.NONE, offset == 0)
    if records:
        header = parse_batch_header(records)
        assert (header.magic, header.base_offset, header.record_count, header.size) == (2, 0, 1, len(records))


def nothing(name: str) -> None:
    """Look for a package where the distribution of protobuf is not installed, as Python does it."""
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("looked_for", [nothing, lambda name: None])
def test_without_the_package_for_protobuf_a_fetch_is_refused(
    broker: exacta.Broker, wire: Wire, looked_for: Callable[[str], None]
) -> None:
    """Then the client must not wait for ever, and must not believe that it has read everything."""
    wire.open_producer("t")
    wire.produce(b"x")
    broker.stop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "find_spec", looked_for)
        with exacta.Broker(broker.data) as again:
            found = fetched(again)
    assert (found.error_code, bytes(found.records or b"")) == (ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, b"")


def test_a_topic_without_such_entries_is_read_whoever_has_created_it(broker: exacta.Broker, wire: Wire) -> None:
    wire.open_producer("t")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("t", b"kafka")
    assert producer.flush(SECONDS) == 0
    assert fetched(broker).error_code == ErrorCode.NONE


def test_a_consumer_that_waits_gets_an_entry_when_it_comes(broker: exacta.Broker, wire: Wire) -> None:
    wire.open_producer("t")
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.partition.eof": True})
    consumer.assign([TopicPartition("t", 0, 0)])
    end = consumer.poll(SECONDS)
    assert end.error().code() == KafkaError._PARTITION_EOF
    wire.produce(b"x")
    message = consumer.poll(SECONDS)
    consumer.close()
    assert (message.error(), message.value()) == (None, b"x")


def test_kafkas_producers_go_on_beside_pulsars(broker: exacta.Broker, wire: Wire) -> None:
    wire.open_producer("t")
    wire.produce(b"pulsar")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
    producer.produce("t", b"kafka")
    assert producer.flush(SECONDS) == 0
    assert isinstance(wire.produce(b"pulsar again"), pb.CommandSendReceipt)
    broker.stop()
    found = stored(broker.data, "t")
    assert [header.magic for header in found.headers] == [0x50, 2, 0x50]
    assert found.payloads() == [b"pulsar", b"pulsar again"]
