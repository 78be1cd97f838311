"""Pulsar's own client for Python (and C++) speaks to a fake that is built on this package."""

import asyncio
from collections.abc import Callable
from typing import Any

import pulsar
import pytest

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.entries import partition_key, sticky_key, walk_batch
from exacta.protocol.pulsar.message_ids import offset_of
from exacta.protocol.pulsar.topic_names import TopicName
from tests.protocol.pulsar.fake import Fake
from tests.pulsar.wire import client

TIMEOUT_MS = 20_000


def run(fake: Fake, use: Callable[[pulsar.Client], Any]) -> Any:
    """Let a client use the fake, in a thread of its own."""

    def connected(url: str) -> Any:
        with client(url) as opened:
            return use(opened)

    async def both() -> Any:
        async with fake as url:
            return await asyncio.to_thread(connected, url)

    return asyncio.run(both())


def received(client: pulsar.Client, count: int) -> list[Any]:
    consumer = client.subscribe("orders", "s", consumer_type=pulsar.ConsumerType.Shared)
    messages = [consumer.receive(timeout_millis=TIMEOUT_MS) for _ in range(count)]
    for message in messages:
        consumer.acknowledge(message)
    consumer.close()  # sends what it has gathered of acknowledgements
    return messages


def test_three_messages_go_there_and_back() -> None:
    def use(client: pulsar.Client) -> Any:
        producer = client.create_producer("orders", batching_enabled=False)
        for number in range(3):
            producer.send(
                b"%d apples" % number,
                properties={"number": str(number)},
                partition_key="k",
                ordering_key="o",
                event_timestamp=1000 + number,
            )
        producer.close()
        return [
            (each.data(), each.properties(), each.partition_key(), each.message_id().entry_id(), each.event_timestamp())
            for each in received(client, 3)
        ]

    fake = Fake()
    assert run(fake, use) == [(b"%d apples" % n, {"number": str(n)}, "k", n, 1000 + n) for n in range(3)]
    ((topic, entries),) = fake.entries.items()
    assert topic == TopicName(local_name="orders")
    assert [(offset, entry.is_batch, entry.message_count) for offset, entry in entries] == [
        (0, False, 1),
        (1, False, 1),
        (2, False, 1),
    ]
    metadata = entries[2][1].metadata
    assert (partition_key(metadata), sticky_key(metadata), metadata.sequence_id) == (b"k", b"o", 2)
    assert [bytes(pair.value) for pair in metadata.properties] == [b"2"]
    assert sorted(offset_of(each) for ack in fake.acks for each in ack.message_id) == [0, 1, 2]


@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"])
def test_a_batch_of_three_messages_goes_there_and_back(compression: str) -> None:
    def use(client: pulsar.Client) -> Any:
        producer = client.create_producer(
            "orders",
            batching_enabled=True,
            batching_max_publish_delay_ms=60_000,
            compression_type=getattr(pulsar.CompressionType, compression),
        )
        for number in range(3):
            producer.send_async(b"%d apples" % number, lambda *_: None, partition_key=f"k{number}")
        producer.flush()
        producer.close()
        return [(each.data(), each.message_id().batch_index()) for each in received(client, 3)]

    fake = Fake()
    assert run(fake, use) == [(b"%d apples" % n, n) for n in range(3)]
    (((offset, entry),),) = fake.entries.values()
    assert (offset, entry.is_batch, entry.message_count) == (0, True, 3)
    assert entry.is_compressed == (compression != "NONE")
    if compression == "NONE":
        walked = list(walk_batch(entry.payload, 3))
        assert [bytes(each.payload) for each in walked] == [b"0 apples", b"1 apples", b"2 apples"]
        assert [partition_key(each.metadata) for each in walked] == [b"k0", b"k1", b"k2"]


def test_a_large_message_comes_in_chunks() -> None:
    large = bytes(range(256)) * 100

    def use(client: pulsar.Client) -> Any:
        producer = client.create_producer("orders", batching_enabled=False, chunking_enabled=True)
        producer.send(large)
        producer.close()
        return [each.data() for each in received(client, 1)]

    fake = Fake(largest_message=10_000)
    assert run(fake, use) == [large]
    ((*chunks,),) = fake.entries.values()
    assert len(chunks) == 3
    assert all(entry.is_chunk and entry.message_count == 1 for _, entry in chunks)


def test_the_client_tells_what_it_can() -> None:
    fake = Fake()
    run(fake, lambda client: client.create_producer("orders").close())
    connects = [
        pb.BaseCommand.FromString(frame[4:]).connect for frame in fake.frames if frame[5] == pb.BaseCommand.CONNECT
    ]
    assert connects
    assert all(connect.protocol_version >= 20 for connect in connects)
    assert all(connect.auth_method_name == "none" for connect in connects)
