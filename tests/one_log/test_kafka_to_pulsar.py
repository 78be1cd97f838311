"""Pulsar's client for Python reads what librdkafka has produced, with all types of subscriptions."""

from contextlib import suppress

import pulsar
import pytest
from confluent_kafka import Producer

import exacta
from tests.one_log.clients import SECONDS, Sent, kafka_reads, kafka_sends, pulsar_reads, pulsar_sends
from tests.pulsar.wire import client

LONG = bytes(range(256)) * 400
"""More than is converted on the event loop."""


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_reader_gets_what_a_record_has(broker: exacta.Broker, compression: str) -> None:
    records = [
        Sent(b"plain"),
        Sent(b"with a key", b"k1", [("name", b"value"), ("other", "ü".encode())]),
        Sent(LONG, b"k2", timestamp_ms=1_700_000_000_123),
    ]
    kafka_sends(broker, "t", records, **{"compression.type": compression})
    plain, keyed, long = pulsar_reads(broker, "t", 3)
    assert (plain.data(), plain.properties(), plain.partition_key()) == (b"plain", {}, "")
    assert (keyed.data(), keyed.partition_key()) == (b"with a key", "k1")
    assert keyed.properties() == {"name": "value", "other": "ü"}
    assert (long.data(), long.event_timestamp()) == (LONG, 1_700_000_000_123)
    assert [each.message_id().ledger_id() for each in (plain, keyed, long)] == [0, 0, 0]
    ids = [each.message_id() for each in (plain, keyed, long)]
    assert [each.entry_id() + max(each.batch_index(), 0) for each in ids] == [0, 1, 2]


def test_messages_of_both_come_in_the_order_of_the_log(broker: exacta.Broker) -> None:
    for number in range(0, 40, 4):
        kafka_sends(broker, "t", [Sent(b"%d" % (number + each)) for each in range(2)])
        pulsar_sends(broker, "t", [{"content": b"%d" % (number + each)} for each in (2, 3)])
    assert [int(each.data()) for each in pulsar_reads(broker, "t", 40)] == list(range(40))


@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "Failover", "KeyShared"])
def test_what_is_acknowledged_does_not_come_again(broker: exacta.Broker, kind: str) -> None:
    kafka_sends(broker, "t", [Sent(b"%d" % number, b"k%d" % (number % 3)) for number in range(10)])
    consumer_type = getattr(pulsar.ConsumerType, kind)
    options = {"consumer_type": consumer_type, "initial_position": pulsar.InitialPosition.Earliest}
    with client(broker.pulsar_url) as opened:
        consumer = opened.subscribe("t", "s", **options)
        found = [consumer.receive(SECONDS * 1000) for _ in range(10)]
        assert sorted(int(each.data()) for each in found) == list(range(10))
        for each in found:
            if int(each.data()) not in (3, 7):
                consumer.acknowledge(each)
        consumer.close()
    broker.stop()
    with exacta.Broker(pulsar=True, data=broker.data) as again, client(again.pulsar_url) as opened:
        consumer = opened.subscribe("t", "s", **options)
        # A client of a batch acknowledges it when it has all of its messages.
        wanted = {3, 7} if kind == "KeyShared" else set(range(10))
        kafka_sends(again, "t", [Sent(b"10", b"k1")])
        left = [int(consumer.receive(SECONDS * 1000).data()) for _ in range(len(wanted) + 1)]
        assert left == [*sorted(wanted), 10]


def test_the_messages_of_a_batch_are_shared_by_their_keys(broker: exacta.Broker) -> None:
    """A Kafka batch has records of many keys, and each key belongs to one consumer."""
    with client(broker.pulsar_url) as opened:
        consumers = [
            opened.subscribe(
                "t", "s", consumer_type=pulsar.ConsumerType.KeyShared, initial_position=pulsar.InitialPosition.Earliest
            )
            for _ in range(2)
        ]
        kafka_sends(broker, "t", [Sent(b"%d" % number, b"key-%d" % (number % 20)) for number in range(200)])
        got: list[list[int]] = [[], []]
        while sum(map(len, got)) < 200:
            for numbers, consumer in zip(got, consumers, strict=True):
                with suppress(pulsar.Timeout):
                    while True:
                        message = consumer.receive(200)
                        numbers.append(int(message.data()))
                        consumer.acknowledge(message)
        keys = [{number % 20 for number in numbers} for numbers in got]
        assert keys[0]
        assert keys[1]
        assert not keys[0] & keys[1]
        for numbers in got:
            for key in range(20):
                of_key = [number for number in numbers if number % 20 == key]
                assert of_key == sorted(of_key)


@pytest.mark.parametrize("commit", [True, False])
def test_what_a_transaction_of_kafkas_aborts_is_never_delivered(broker: exacta.Broker, commit: bool) -> None:
    kafka_sends(broker, "t", [Sent(b"before")])
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x"})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce("t", b"inside", partition=0)
    producer.flush(SECONDS)
    (producer.commit_transaction if commit else producer.abort_transaction)(SECONDS)
    kafka_sends(broker, "t", [Sent(b"after")])
    wanted = [b"before", b"inside", b"after"] if commit else [b"before", b"after"]
    assert [each.data() for each in pulsar_reads(broker, "t", len(wanted))] == wanted


def test_null_values_and_odd_headers_are_not_lost(broker: exacta.Broker) -> None:
    headers = [("twice", b"1"), ("twice", b"2"), ("bytes", b"\xff\x00"), ("nothing", None)]
    kafka_sends(broker, "t", [Sent(None, b"gone"), Sent(b"v", b"\xff\xfe", headers)])
    gone, odd = pulsar_reads(broker, "t", 2)
    assert (gone.data(), gone.partition_key()) == (b"", "gone")
    assert odd.partition_key() == "//4="
    assert odd.properties()["twice"] in ("1", "2")
    # A program that passes a message on passes its properties on, and then nothing is lost.
    pulsar_sends(broker, "u", [{"content": odd.data(), "properties": odd.properties()}])
    [back] = kafka_reads(broker, "u", 1)
    assert [each for each in back.headers() if not each[0].startswith("pulsar-")] == headers


def test_a_seek_by_time_finds_the_batch(broker: exacta.Broker) -> None:
    for number in range(3):
        kafka_sends(broker, "t", [Sent(b"%d" % number, timestamp_ms=1_700_000_000_000 + 1000 * number)])
    with client(broker.pulsar_url) as opened:
        reader = opened.create_reader("t", pulsar.MessageId.earliest)
        reader.seek(1_700_000_001_000)
        assert reader.read_next(timeout_millis=SECONDS * 1000).data() == b"1"


@pytest.mark.parametrize("compression", ["none", "lz4"])
@pytest.mark.parametrize("kind", ["Exclusive", "Shared", "KeyShared"])
def test_a_seek_to_a_time_finds_its_record_in_a_batch(broker: exacta.Broker, kind: str, compression: str) -> None:
    first_ms = 1_700_000_000_000
    records = [Sent(b"%d" % number, b"k", timestamp_ms=first_ms + number) for number in range(200)]
    kafka_sends(broker, "t", records, **{"compression.type": compression})
    with client(broker.pulsar_url) as opened:
        for number in (50, 199, 0, 100):
            consumer = opened.subscribe("t", "s", consumer_type=getattr(pulsar.ConsumerType, kind))
            consumer.seek(first_ms + number)
            assert consumer.receive(SECONDS * 1000).data() == b"%d" % number
            consumer.close()


def test_a_reader_seeks_to_a_time_in_a_compressed_batch(broker: exacta.Broker) -> None:
    first_ms = 1_700_000_000_000
    records = [Sent(b"%d" % number, timestamp_ms=first_ms + number) for number in range(200)]
    kafka_sends(broker, "t", records, **{"compression.type": "zstd"})
    pulsar_sends(broker, "t", [{"content": b"%d" % number} for number in (200, 201)])
    with client(broker.pulsar_url) as opened:
        reader = opened.create_reader("t", pulsar.MessageId.earliest)
        for time_ms, number in [(first_ms + 100, 100), (first_ms + 200, 200)]:
            reader.seek(time_ms)
            assert reader.read_next(SECONDS * 1000).data() == b"%d" % number, "an entry of Pulsar's begins as a whole"
