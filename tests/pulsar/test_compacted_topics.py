"""Compacted topics take Pulsar's messages whose keys can be seen, and say why they refuse others."""

from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

import exacta
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.compression import compress
from exacta.protocol.pulsar.entries import build_batch, build_entry
from exacta.records import admission, pulsar_admission
from tests.pulsar.wire import Wire

ENCRYPTED: dict[str, Any] = {"encryption_keys": [{"key": "k", "value": b"v"}]}
CHUNK: dict[str, Any] = {"uuid": "u", "chunk_id": 0, "num_chunks_from_msg": 2, "total_chunk_msg_size": 9}


@pytest.fixture(params=["compact", "compact,delete"])
def wire(request: pytest.FixtureRequest, broker: exacta.Broker, wire: Wire) -> Wire:
    """A connection with a producer of a compacted topic."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    [created] = admin.create_topics([NewTopic("t", 1, config={"cleanup.policy": request.param})]).values()
    created.result(20)
    wire.open_producer("t")
    return wire


def send(wire: Wire, entry: bytes, count: int = 1) -> Any:
    """Send an entry; return the receipt, or what came instead."""
    return wire.ask(wire.session.send(entry, 0, count))


def single(key: bytes | None, value: bytes = b"v", **fields: Any) -> bytes:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1_700_000_000_000, **fields)
    if key is not None:
        metadata.partition_key = key
    return build_entry(metadata, value)


def batch(keys: Sequence[bytes | None], codec: pb.CompressionType = pb.CompressionType.NONE, **fields: Any) -> bytes:
    messages = [pb.SingleMessageMetadata(partition_key=key) for key in keys]
    payload = build_batch((message, b"v" * 20) for message in messages)
    metadata = pb.MessageMetadata(
        producer_name="p", sequence_id=0, publish_time=1_700_000_000_000, num_messages_in_batch=len(keys), **fields
    )
    if codec != pb.CompressionType.NONE:
        metadata.compression, metadata.uncompressed_size = codec, len(payload)
        payload = compress(codec, payload)
    return build_entry(metadata, payload)


def assert_refused(answer: Any, text: str) -> None:
    assert (type(answer), answer.error) == (pb.CommandSendError, pb.ServerError.NotAllowedError)
    assert answer.message == text


@pytest.mark.parametrize("codec", pb.CompressionType.values(), ids=pb.CompressionType.keys())
def test_each_message_of_a_batch_must_have_a_key(wire: Wire, codec: pb.CompressionType) -> None:
    refused = send(wire, batch([b"a", None, b"", None], codec), 4)
    assert_refused(refused, "2 of 4 messages have no key, in a compacted topic")
    assert send(wire, batch([b"a", b"b", b""], codec), 3).message_id.entry_id == 0


def test_a_message_that_is_no_batch_must_have_a_key(wire: Wire) -> None:
    assert_refused(send(wire, single(None)), "the message has no key, in a compacted topic")
    assert_refused(send(wire, single(b"k", null_partition_key=True)), "the message has no key, in a compacted topic")
    assert send(wire, single(b"k")).message_id.entry_id == 0
    assert send(wire, single(b"k", b"sealed", **ENCRYPTED)).message_id.entry_id == 1


def test_what_has_its_keys_inside_is_refused(wire: Wire) -> None:
    assert_refused(
        send(wire, batch([b"a", b"b"], partition_key=b"a", **ENCRYPTED), 2),
        "a compacted topic takes no encrypted batch, since its keys cannot be seen: do not batch",
    )
    assert_refused(send(wire, single(b"k", **CHUNK)), "a compacted topic takes no large message in chunks")


def test_a_batch_that_is_not_what_it_says_is_refused(wire: Wire) -> None:
    damaged = build_entry(
        pb.MessageMetadata(
            producer_name="p",
            sequence_id=0,
            publish_time=1_700_000_000_000,
            num_messages_in_batch=1,
            compression=pb.CompressionType.ZSTD,
            uncompressed_size=100,
        ),
        b"nothing of the kind",
    )
    assert "a batch that cannot be decompressed" in send(wire, damaged).message
    hole = build_batch([(pb.SingleMessageMetadata(partition_key=b"k", compacted_out=True), b"")])
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, num_messages_in_batch=1)
    assert "no key" in send(wire, build_entry(metadata, hole)).message


def test_work_on_the_loop_is_bounded(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds are those for a request of Kafka's."""
    assert vars(pulsar_admission)["Allowance"] is admission.Allowance
    monkeypatch.setattr(pulsar_admission, "Allowance", lambda: admission.Allowance(100, 3))
    assert "more than 500000 messages" in send(wire, batch([b"a"] * 4), 4).message
    large = send(wire, batch([b"a" * 50, b"b" * 50], pb.CompressionType.ZSTD), 2)
    assert "of which at most 100 are read" in large.message
    assert send(wire, batch([b"a" * 50, b"b" * 50]), 2).message_id.entry_id == 0
