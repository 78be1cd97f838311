"""Entries: those of a real client, and all kinds that must not be stored."""

import base64
import struct
from collections.abc import Callable
from typing import Any

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import unwrapped
from exacta.protocol.pulsar.entries import (
    MOST_MESSAGES,
    Entry,
    build_batch,
    build_body,
    build_entry,
    check_entry,
    checksum_head,
    parse_body,
    parse_entry,
    partition_key,
    sticky_key,
    walk_batch,
)
from exacta.protocol.pulsar.errors import BrokenEntry
from exacta.protocol.pulsar.frames import LARGEST_COMMAND, LARGEST_MESSAGE, parse_frame
from tests.protocol.pulsar import recorded

Change = Callable[[pb.MessageMetadata], object]


def metadata(**fields: Any) -> pb.MessageMetadata:
    return pb.MessageMetadata(producer_name="tills", sequence_id=4, publish_time=1000, **fields)


def single(**fields: Any) -> pb.SingleMessageMetadata:
    return pb.SingleMessageMetadata(payload_size=0, **fields)


def batch(*payloads: bytes) -> bytes:
    return build_batch((single(), payload) for payload in payloads)


def entry_of(frame: bytes) -> tuple[Entry, pb.CommandSend]:
    found = parse_frame(frame)
    send = unwrapped(found.command)
    assert isinstance(send, pb.CommandSend)
    assert found.entry is not None
    return parse_entry(found.entry), send


# --- what a client has sent -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", recorded.SENDS)
def test_what_a_client_sent_is_sound(frame: bytes) -> None:
    entry, send = entry_of(frame)
    check_entry(entry, send)
    again = parse_frame(frame).entry
    assert again is not None
    assert bytes(again) == checksum_head(entry.body) + entry.body
    assert parse_body(entry.body) == entry
    assert build_body(entry.metadata, entry.payload) == entry.body
    assert entry.payload.obj is frame


def test_a_message() -> None:
    entry, _ = entry_of(recorded.SEND_MESSAGE)
    assert (entry.is_batch, entry.message_count, bytes(entry.payload)) == (False, 1, b"42 apples")
    assert (entry.is_compressed, entry.is_encrypted, entry.is_chunk) == (False, False, False)
    assert (entry.deliver_at_ms, entry.metadata.event_time, entry.schema_version) == (2000, 1000, None)
    assert (partition_key(entry.metadata), sticky_key(entry.metadata)) == (b"k", b"o")
    assert entry.publish_time_ms == entry.metadata.publish_time > 0
    assert [(pair.key, pair.value) for pair in entry.metadata.properties] == [(b"shop", b"north")]


def test_a_batch() -> None:
    entry, send = entry_of(recorded.SEND_BATCH)
    assert (entry.is_batch, entry.message_count, send.num_messages) == (True, 2, 2)
    walked = list(walk_batch(entry.payload, 2))
    assert [(each.index, bytes(each.payload)) for each in walked] == [(0, b"0 pears"), (1, b"1 pears")]
    assert [partition_key(each.metadata) for each in walked] == [b"k0", b"k1"]
    assert partition_key(entry.metadata) == b"k0"  # the client for C++ takes the first message's key


def test_a_compressed_batch() -> None:
    entry, _ = entry_of(recorded.SEND_COMPRESSED)
    assert (entry.is_batch, entry.message_count, entry.is_compressed) == (True, 2, True)
    assert entry.metadata.compression == pb.ZSTD


# --- reading ----------------------------------------------------------------------------------------------------------


def test_a_batch_of_one_is_a_batch() -> None:
    """The number that it says is the default: only its presence tells."""
    one = parse_entry(build_entry(metadata(num_messages_in_batch=1), batch(b"a")))
    none = parse_entry(build_entry(metadata(), b"a"))
    assert (one.is_batch, one.message_count) == (True, 1)
    assert (none.is_batch, none.message_count) == (False, 1)
    check_entry(one)


def test_an_entry_without_a_checksum_is_read() -> None:
    body = build_body(metadata(), b"a")
    assert parse_entry(body) == parse_entry(checksum_head(body) + body)


def test_a_wrong_checksum_has_an_error_of_its_own() -> None:
    entry = build_entry(metadata(), b"a")
    with pytest.raises(BrokenEntry, match="checksum") as refused:
        parse_entry(entry[:-1] + b"b")
    assert refused.value.error == pb.ServerError.ChecksumError


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "an entry of 0 bytes"),
        (b"\0\0\0", "an entry of 3 bytes"),
        (b"\0\0\0\0payload", "metadata of 0 bytes"),
        (b"\0\0\0\x09\x0a\x01", "metadata of 9 bytes, in an entry of 6"),
        (struct.pack(">I", LARGEST_COMMAND + 1) + bytes(LARGEST_COMMAND + 1), "at most"),
        (b"\0\0\0\x03\x0a\x01a", "sequence_id, publish_time of MessageMetadata is missing"),
        (b"\0\0\0\x07\x0a\x01\xff\x10\x00\x18\x00", "UTF-8"),
        (b"\0\0\0\x07\x0a\xff\xff\xff\x10\x00\x18", "not the metadata"),
    ],
)
def test_a_body_that_is_none_is_refused(body: bytes, reason: str) -> None:
    for data in (body, checksum_head(body) + body):
        with pytest.raises(BrokenEntry, match=reason) as refused:
            parse_entry(data)
        assert refused.value.error == pb.ServerError.NotAllowedError


def test_keys_and_properties_need_not_be_text() -> None:
    pair = pb.Property(key=b"\xff", value=b"\xfe")
    entry = parse_entry(build_entry(metadata(partition_key=b"\xff", properties=[pair]), b""))
    assert (partition_key(entry.metadata), list(entry.metadata.properties)) == (b"\xff", [pair])


@given(st.binary(max_size=100))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    for entry in (data, checksum_head(data) + data, struct.pack(">I", len(data)) + data):
        try:
            check_entry(parse_entry(entry))
        except BrokenEntry:
            continue


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=20), st.data())
def test_any_bytes_in_a_batch_are_refused_or_read(payloads: list[bytes], data: st.DataObject) -> None:
    payload = bytearray(batch(*payloads))
    for _ in range(data.draw(st.integers(0, 3))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        walked = list(walk_batch(payload, len(payloads)))
    except BrokenEntry:
        return
    assert len(walked) == len(payloads)


# --- batches ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=20))
def test_a_batch_is_walked_as_it_was_built(payloads: list[bytes]) -> None:
    entry = parse_entry(build_entry(metadata(num_messages_in_batch=len(payloads)), batch(*payloads)))
    check_entry(entry)
    assert [bytes(each.payload) for each in walk_batch(entry.payload, entry.message_count)] == payloads


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (batch(b"aaaaaaaaa"), "a batch of 2 messages ends in message 1"),
        (batch(b"a", b"b", b"c"), "7 bytes behind the 2 messages"),
        (batch(b"a", b"b")[:-1], "message 1 of a batch has 1 bytes, it says"),
        (batch(b"aaaa", b"bbb")[:-4], "ends in the metadata of message 1"),
        (struct.pack(">I", LARGEST_MESSAGE + 1) + bytes(LARGEST_MESSAGE + 1), "message 0 of a batch has more than"),
        (batch(b"aaaaaa") + b"\0\0\0\x00", "payload_size of SingleMessageMetadata is missing"),
        (batch(b"aaaaaa") + b"\0\0\0\x01\xff", "message 1 of a batch: "),
        (batch(b"aaaaaa") + b"\0\0\0\x0b\x18" + b"\xff" * 9 + b"\x01", "message 1 of a batch has -1 bytes"),
    ],
)
def test_a_batch_whose_messages_do_not_fill_it_is_refused(payload: bytes, reason: str) -> None:
    entry = parse_entry(build_entry(metadata(num_messages_in_batch=2), payload))
    with pytest.raises(BrokenEntry, match=reason):
        check_entry(entry)


def test_what_cannot_be_seen_is_not_judged() -> None:
    key = pb.EncryptionKeys(key="k", value=b"v")
    for hidden in (metadata(compression=pb.LZ4, uncompressed_size=30), metadata(encryption_keys=[key])):
        hidden.num_messages_in_batch = 2
        check_entry(parse_entry(build_entry(hidden, b"nobody can read this")))


# --- judging ----------------------------------------------------------------------------------------------------------


def chunk(**fields: Any) -> pb.MessageMetadata:
    return metadata(**{"uuid": "u", "chunk_id": 1, "num_chunks_from_msg": 3, "total_chunk_msg_size": 10, **fields})


@pytest.mark.parametrize(
    ("said", "payload", "reason"),
    [
        (metadata(marker_type=21), b"", "markers are written by brokers only"),
        (pb.MessageMetadata(producer_name="", sequence_id=0, publish_time=2**63), b"", "beyond"),
        (pb.MessageMetadata(producer_name="", sequence_id=2**63, publish_time=0), b"", "beyond"),
        (metadata(event_time=2**64 - 1), b"", "beyond"),
        (metadata(num_messages_in_batch=0), b"", "a batch of 0 messages"),
        (metadata(num_messages_in_batch=-1), b"", "a batch of -1 messages"),
        (
            metadata(num_messages_in_batch=MOST_MESSAGES + 1),
            bytes(6 * MOST_MESSAGES + 6),
            "a batch of 1000001 messages",
        ),
        (metadata(num_messages_in_batch=2), bytes(11), "has no room for them"),
        (metadata(num_messages_in_batch=2, compression=pb.LZ4), bytes(100), "has no room for them"),
        (metadata(num_messages_in_batch=2, compression=pb.LZ4, uncompressed_size=11), b"", "has no room for them"),
        (chunk(num_messages_in_batch=1), bytes(6), "a chunk that is a batch"),
        (chunk(uuid=""), b"", "a chunk without"),
        (metadata(uuid="u", num_chunks_from_msg=3, total_chunk_msg_size=10), b"", "a chunk without"),
        (metadata(uuid="u", num_chunks_from_msg=3, chunk_id=1), b"", "a chunk without"),
        (chunk(chunk_id=3), b"", "chunk 3 of 3"),
        (chunk(chunk_id=-1), b"", "chunk -1 of 3"),
        (metadata(uuid="u", chunk_id=0, total_chunk_msg_size=10), b"", "chunk 0 of 0"),
        (chunk(), bytes(11), "a chunk of 11 bytes, of a message of 10"),
    ],
)
def test_what_cannot_be_true_is_refused(said: pb.MessageMetadata, payload: bytes, reason: str) -> None:
    entry = parse_entry(build_entry(said, payload))
    with pytest.raises(BrokenEntry, match=reason):
        check_entry(entry)


def test_chunks_may_be_what_they_are() -> None:
    check_entry(parse_entry(build_entry(chunk(), bytes(10))))
    sealed = chunk(encryption_keys=[pb.EncryptionKeys(key="k", value=b"v")])
    check_entry(parse_entry(build_entry(sealed, bytes(26))))  # what encryption adds


@pytest.mark.parametrize(
    ("send", "reason"),
    [
        (pb.CommandSend(producer_id=0, sequence_id=0, num_messages=3), "the command says 3 messages, the entry 2"),
        (pb.CommandSend(producer_id=0, sequence_id=0, marker=True), "markers are written by brokers only"),
    ],
)
def test_the_command_is_compared(send: pb.CommandSend, reason: str) -> None:
    entry = parse_entry(build_entry(metadata(num_messages_in_batch=2), batch(b"a", b"b")))
    check_entry(entry, pb.CommandSend(producer_id=0, sequence_id=0))  # says nothing
    with pytest.raises(BrokenEntry, match=reason):
        check_entry(entry, send)


# --- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [metadata, single])
def test_keys(kind: Callable[..., pb.MessageMetadata]) -> None:
    assert partition_key(kind()) is None
    assert partition_key(kind(partition_key=b"")) == b""
    assert partition_key(kind(partition_key=b"k", null_partition_key=True)) is None
    encoded = base64.b64encode(b"\x00\xff")
    assert partition_key(kind(partition_key=encoded, partition_key_b64_encoded=True)) == b"\x00\xff"
    assert partition_key(kind(partition_key=b"not base64", partition_key_b64_encoded=True)) == b"not base64"
    assert sticky_key(kind(partition_key=b"k")) == b"k"
    assert sticky_key(kind(partition_key=b"k", ordering_key=b"o")) == b"o"
    assert sticky_key(kind()) is None


def test_the_checksum_is_crc32c() -> None:
    assert checksum_head(b"123456789") == b"\x0e\x01\xe3\x06\x92\x83"  # the check value of CRC-32C
    assert crc32c.crc32c(b"123456789") == 0xE3069283
