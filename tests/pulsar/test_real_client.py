"""Pulsar's own client for Python (and C++) produces, unmodified."""

from typing import Any

import pulsar
import pytest

import exacta
from exacta.protocol.pulsar.entries import partition_key, walk_batch
from exacta.protocol.pulsar.messages_pb2 import CompressionType
from tests.pulsar.wire import client, running, stored

COUNT = 10


def produced(broker: exacta.Broker, topic: str = "orders", **options: Any) -> list[Any]:
    """Send ten messages, many at once; return their ids."""
    found: list[Any] = []
    with client(broker.pulsar_url) as opened:
        producer = opened.create_producer(topic, **options)
        for number in range(COUNT):
            producer.send_async(
                b"%d" % number,
                lambda result, message_id: found.append((result, message_id)),
                properties={"number": str(number)},
                partition_key=f"k{number % 3}",
                event_timestamp=1000 + number,
            )
        producer.flush()
        producer.close()
    assert [result for result, _ in found] == [pulsar.Result.Ok] * COUNT
    return [message_id for _, message_id in found]


def test_plain_messages_are_stored_with_what_they_carry(broker: exacta.Broker) -> None:
    ids = produced(broker, batching_enabled=False)
    assert [each.entry_id() for each in ids] == list(range(COUNT))
    broker.stop()
    found = stored(broker.data, "orders")
    assert found.payloads() == [b"%d" % number for number in range(COUNT)]
    assert not any(entry.is_batch for _, entry in found.entries)
    [metadata] = [entry.metadata for offset, entry in found.entries if offset == 4]
    assert [(each.key, each.value) for each in metadata.properties] == [(b"number", b"4")]
    assert (partition_key(metadata), metadata.event_time) == (b"k1", 1004)


@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"])
def test_batches_are_stored_as_they_came(broker: exacta.Broker, compression: str) -> None:
    ids = produced(
        broker,
        batching_enabled=True,
        batching_max_publish_delay_ms=1000,
        compression_type=getattr(pulsar.CompressionType, compression),
    )
    assert [each.batch_index() for each in ids] == list(range(COUNT))
    broker.stop()
    [(offset, entry)] = stored(broker.data, "orders").entries
    assert (offset, entry.is_batch, entry.message_count) == (0, True, COUNT)
    assert CompressionType.Name(entry.metadata.compression) == compression.upper()
    if not entry.is_compressed:
        values = [bytes(each.payload) for each in walk_batch(entry.payload, COUNT)]
        assert values == [b"%d" % number for number in range(COUNT)]


def test_a_large_message_comes_in_chunks(broker: exacta.Broker) -> None:
    large = bytes(range(256)) * (48 << 10)  # 12 MiB
    with client(broker.pulsar_url) as opened:
        producer = opened.create_producer("orders", batching_enabled=False, chunking_enabled=True, producer_name="p")
        producer.send(large)
        producer.send(b"small")
        producer.close()
        consumer = opened.subscribe("orders", "s", initial_position=pulsar.InitialPosition.Earliest)
        assert [consumer.receive(20_000).data() for _ in range(2)] == [large, b"small"]
    broker.stop()
    found = stored(broker.data, "orders")
    assert b"".join(found.payloads()) == large + b"small"
    assert [entry.is_chunk for _, entry in found.entries] == [True, True, True, False]


def test_a_partitioned_topic_takes_messages_by_their_keys() -> None:
    with running(num_partitions=3) as broker:
        ids = produced(broker, "persistent://acme/shop/orders", batching_enabled=False)
        assert {each.partition() for each in ids} <= {0, 1, 2}
        broker.stop()
        keys = [
            {
                partition_key(entry.metadata)
                for _, entry in stored(broker.data, "pulsar..acme..shop..orders", index).entries
            }
            for index in range(3)
        ]
        assert sum(map(len, keys)) == len(set().union(*keys)) == 3, "a key lies in one partition"


def test_a_producer_goes_on_after_a_restart_of_the_broker() -> None:
    with running() as broker, client(broker.pulsar_url) as opened:
        producer = opened.create_producer("orders", producer_name="p", batching_enabled=False)
        for number in range(5):
            producer.send(b"%d" % number)
        broker.restart(clean=False)
        for number in range(5, 10):
            producer.send(b"%d" % number)
        assert producer.last_sequence_id() == 9
        producer.close()
        again = opened.create_producer("orders", producer_name="p", batching_enabled=False)
        assert again.last_sequence_id() == 9
        again.send(b"10")
        again.close()
        broker.stop()
        assert stored(broker.data, "orders").payloads() == [b"%d" % number for number in range(11)]


@pytest.mark.parametrize(("options", "count"), [({"initial_sequence_id": 1}, 20), ({}, 10)])
def test_a_named_producer_needs_a_first_sequence_id(options: dict[str, int], count: int) -> None:
    """If this fails for a producer without one, this client has been mended, and `docs/reference/pulsar.md` is wrong.

    It loses its connection before its first receipt, asks the broker for the last sequence id once more, and gives
    numbers to new messages that others have, which wait for their receipts.
    """
    with running() as broker, client(broker.pulsar_url) as opened:
        producer = opened.create_producer("orders", producer_name="p", send_timeout_millis=0, **options)
        broker.kill()
        results: list[Any] = []
        for begin in (0, 10):
            for number in range(begin, begin + 10):
                producer.send_async(b"%d" % number, lambda result, _: results.append(result))
            if not begin:
                broker.restart()
            producer.flush()
        assert results == [pulsar.Result.Ok] * 20
        broker.stop()
        assert stored(broker.data, "orders").payloads() == [b"%d" % number for number in range(count)]


def test_repeats_are_dropped_by_their_sequence_ids(broker: exacta.Broker) -> None:
    with client(broker.pulsar_url) as opened:
        for last in (4, 7):
            producer = opened.create_producer("orders", producer_name="copier", batching_enabled=False)
            for number in range(1, last + 1):  # the client takes 0 for none
                producer.send(b"%d" % number, sequence_id=number)
            producer.close()
    broker.stop()
    assert stored(broker.data, "orders").payloads() == [b"%d" % number for number in range(1, 8)]


def test_a_name_that_is_taken_is_refused_at_once(broker: exacta.Broker) -> None:
    with client(broker.pulsar_url) as opened:
        producer = opened.create_producer("orders", producer_name="p")
        with pytest.raises(pulsar.ProducerBusy):
            opened.create_producer("orders", producer_name="p")
        producer.send(b"x")
        producer.close()


def test_a_topic_is_created_for_its_producer_only_if_that_is_allowed() -> None:
    with (
        exacta.Broker(pulsar=True, auto_create_topics_enable=False) as broker,
        client(broker.pulsar_url) as opened,
        pytest.raises(pulsar.TopicNotFound),
    ):
        opened.create_producer("orders")


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted", "serializable"])
def test_a_durable_subscription_reads_committed_messages_only(broker: exacta.Broker, level: str) -> None:
    """This client's consumers are durable, and its readers have no properties."""
    with client(broker.pulsar_url) as opened:

        def subscribe() -> Any:
            return opened.subscribe("orders", "s", properties={"isolation.level": level})

        if level == "read_committed":
            subscribe().close()
        else:
            with pytest.raises(pulsar.NotAllowedError):
                subscribe()
