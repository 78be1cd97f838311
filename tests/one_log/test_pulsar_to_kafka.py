"""librdkafka reads what Pulsar's client for Python has produced, in batches and singly, by each codec."""

from typing import Any

import pulsar
import pytest
from confluent_kafka import Consumer, TopicPartition

import exacta
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.one_log.clients import SECONDS, Sent, headers_of, kafka_reads, kafka_sends, pulsar_sends
from tests.pulsar.wire import Wire

LONG = b"long " * 40_000


def messages(count: int = 3) -> list[dict[str, Any]]:
    return [
        {
            "content": b"%d" % number,
            "partition_key": f"k{number}",
            "properties": {"name": f"v{number}"},
            "event_timestamp": 1000 + number,
        }
        for number in range(count)
    ]


@pytest.mark.parametrize("batching", [True, False])
@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"])
def test_a_consumer_gets_what_a_message_has(broker: exacta.Broker, batching: bool, compression: str) -> None:
    options = {"batching_enabled": batching, "compression_type": getattr(pulsar.CompressionType, compression)}
    pulsar_sends(broker, "t", messages(), producer_name="p", **options)
    found = kafka_reads(broker, "t", 3)
    assert [(each.offset(), each.value(), each.key()) for each in found] == [
        (number, b"%d" % number, b"k%d" % number) for number in range(3)
    ]
    for number, each in enumerate(found):
        assert headers_of(each) == {
            "name": b"v%d" % number,
            "pulsar-event-time": b"%d" % (1000 + number),
            "pulsar-producer-name": b"p",
            "pulsar-sequence-id": b"%d" % number,
        }
        kind, timestamp_ms = each.timestamp()
        assert (kind, timestamp_ms > 1_700_000_000_000) == (1, True)


def test_long_messages_are_converted_too(broker: exacta.Broker) -> None:
    pulsar_sends(broker, "t", [{"content": LONG + b"%d" % number} for number in range(10)])
    assert [each.value() for each in kafka_reads(broker, "t", 10)] == [LONG + b"%d" % number for number in range(10)]


def test_a_consumer_begins_within_a_batch(broker: exacta.Broker) -> None:
    pulsar_sends(broker, "t", messages(5), batching_enabled=True)
    assert [each.offset() for each in kafka_reads(broker, "t", 2, offset=3)] == [3, 4]


def test_messages_of_both_have_offsets_without_gaps(broker: exacta.Broker) -> None:
    for number in range(0, 40, 4):
        kafka_sends(broker, "t", [Sent(b"%d" % (number + each)) for each in range(2)])
        pulsar_sends(broker, "t", [{"content": b"%d" % (number + each)} for each in (2, 3)])
    assert [(each.offset(), int(each.value())) for each in kafka_reads(broker, "t", 40)] == [
        (number, number) for number in range(40)
    ]


@pytest.mark.parametrize("commit", [True, False])
def test_what_a_transaction_of_pulsars_aborts_is_for_nobody(broker: exacta.Broker, commit: bool) -> None:
    wire = Wire(broker.pulsar_url)
    wire.open_producer("t")
    least = wire.begin().txnid_least_bits
    assert isinstance(wire.produce(b"inside", transaction=least), pb.CommandSendReceipt)
    wire.end(least, pb.TxnAction.COMMIT if commit else pb.TxnAction.ABORT)
    wire.produce(b"after", sequence=1)
    wire.close()
    wanted = [b"inside", b"after"] if commit else [b"after"]
    assert [each.value() for each in kafka_reads(broker, "t", len(wanted))] == wanted
    everything = kafka_reads(broker, "t", 2, isolation="read_uncommitted")
    assert [each.value() for each in everything] == [b"inside", b"after"]


def test_offsets_by_time_and_lag(broker: exacta.Broker) -> None:
    pulsar_sends(broker, "t", messages(5), batching_enabled=True)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
    [found] = consumer.offsets_for_times([TopicPartition("t", 0, 1)], SECONDS)
    assert found.offset == 0
    consumer.commit(offsets=[TopicPartition("t", 0, 2)], asynchronous=False)
    [committed] = consumer.committed([TopicPartition("t", 0)], SECONDS)
    assert (committed.offset, consumer.get_watermark_offsets(TopicPartition("t", 0), SECONDS)) == (2, (0, 5))
    consumer.close()
