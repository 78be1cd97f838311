"""Pulsar's entries in compaction: what is a key, a tombstone, a hole, and what cannot be opened."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exacta.ports.compaction import Rewritten
from exacta.protocol.kafka.batch_building import foreign_batch
from exacta.protocol.kafka.records import parse_batch_header, with_max_timestamp
from exacta.protocol.pulsar.entries import build_batch, build_body, parse_body
from exacta.protocol.pulsar.messages_pb2 import CompressionType, MessageMetadata, SingleMessageMetadata
from exacta.records import keyed_records
from exacta.records.compaction import compaction
from exacta.records.pulsar_entries import entry_of
from exacta.records.pulsar_records import pulsar_records
from tests.records.compacting import NOW_MS, build, build_pulsars, compacted, rows_of, rules

A, B, C = b"a", b"b", b"c"
ENCRYPTED = {"encryption_keys": [{"key": "k", "value": b"v"}]}


def put(offset: int, *records: tuple[bytes | None, bytes | None], **options: Any) -> bytes:
    return build_pulsars(offset, [(key, value, NOW_MS) for key, value in records], **options)


def offsets(log: list[bytes]) -> list[int]:
    return [row.offset for batch in log for row in rows_of(batch)]


def rewritten(batch: bytes, *later: bytes) -> Rewritten | None:
    one_pass = compaction(rules())
    for each in (batch, *later):
        one_pass.note(each)
    return one_pass.rewrite(batch, False)


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4])
def test_a_message_that_goes_leaves_the_hole_that_apache_pulsar_leaves(codec: int) -> None:
    """Measured on Apache Pulsar 4.2: the same count, and an empty message that says that it is compacted out."""
    batch = put(3, (A, b"1"), (B, b"2"), (A, b"3"), codec=codec, schema_version=b"s")
    left = rewritten(batch, put(6, (B, b"4")))
    assert left is not None
    before, after = entry_of(batch), entry_of(left.batch)
    hole = build_batch([(SingleMessageMetadata(payload_size=0, compacted_out=True), b"")])
    if codec == CompressionType.NONE:
        whole = bytes(before.payload)
        assert bytes(after.payload) == hole + hole + whole[2 * (len(whole) // 3) :]
    metadata = MessageMetadata()
    metadata.CopyFrom(before.metadata)
    if codec != CompressionType.NONE:
        metadata.uncompressed_size = after.metadata.uncompressed_size
    assert after.metadata == metadata
    assert [(row.offset, row.key, row.value) for row in rows_of(left.batch)] == [(5, A, b"3")]


def test_what_the_metadata_say_that_nobody_here_knows_stays() -> None:
    body = build_body(MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, num_messages_in_batch=2), b"")
    metadata = body[4:] + b"\xaa\x3f\x03new"  # the field 1013
    payload = build_batch((SingleMessageMetadata(partition_key=A), value) for value in (b"1", b"2"))
    whole = len(metadata).to_bytes(4, "big") + metadata + payload
    batch = foreign_batch(0x50, (whole,), 2, timestamp_ms=1, producer_id=-1, producer_epoch=-1)
    left = rewritten(batch)
    assert left is not None
    assert b"\xaa\x3f\x03new" in bytes(left.batch)


def test_a_key_is_one_whoever_wrote_it_and_however_it_travels() -> None:
    key = b"\xff\xfe"  # in base64, by Pulsar's clients
    log = [build(0, [(key, b"1", NOW_MS)]), put(1, (key, b"2")), put(2, (A, b"1"), batched=False)]
    assert offsets(compacted(log, rules())[0]) == [1, 2]
    log += [build(3, [(A, b"2", NOW_MS), (key, b"3", NOW_MS)])]
    assert offsets(compacted(log, rules())[0]) == [3, 4]


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
@pytest.mark.parametrize("value", [None, b"", b"v"])
def test_a_null_and_an_empty_payload_delete_the_key(batched: bool, codec: int, value: bytes | None) -> None:
    """An empty one does so in Apache Pulsar, too, and older clients have no other way."""
    log = [build(0, [(A, b"1", NOW_MS)]), put(1, (A, value), batched=batched, codec=codec), put(2, (B, b"1"))]
    left, _ = compacted(log, rules())
    assert offsets(left) == [1, 2], "readers still learn that the key is gone"
    assert rows_of(left[0])[0].timestamp_ms == NOW_MS
    later = rules(NOW_MS + 1_000_000)
    assert offsets(compacted(left, later, dirty_from=3)[0]) == ([1, 2] if value else [2])


def test_an_empty_value_of_kafkas_is_a_value() -> None:
    left, _ = compacted([build(0, [(A, b"", NOW_MS)]), put(1, (B, b"1"))], rules())
    assert offsets(compacted(left, rules(NOW_MS + 1_000_000), dirty_from=2)[0]) == [0, 1]


def test_an_encrypted_message_deletes_its_key_only_if_it_says_so() -> None:
    """An encrypted payload is not empty, even if there was nothing."""
    log = [put(0, (A, b"sealed"), batched=False, **ENCRYPTED), put(1, (B, b"1"))]
    assert offsets(compacted(compacted(log, rules())[0], rules(NOW_MS + 1_000_000), dirty_from=2)[0]) == [0, 1]
    log[0] = put(0, (A, b"sealed"), batched=False, uncompressed_size=0, **ENCRYPTED)
    assert offsets(compacted(compacted(log, rules())[0], rules(NOW_MS + 1_000_000), dirty_from=2)[0]) == [1]


def test_what_cannot_be_opened_stays_whole() -> None:
    encrypted = put(0, (A, b"1"), (A, b"2"), **ENCRYPTED)
    chunk = {"uuid": "u", "chunk_id": 0, "num_chunks_from_msg": 2, "total_chunk_msg_size": 9}
    log = [encrypted, put(2, (A, b"3"), batched=False, **chunk), put(3, (A, b"4"))]
    one_pass = compaction(rules())
    for batch in log:
        one_pass.note(batch)
    rewritten = [one_pass.rewrite(batch, False) for batch in log]
    assert [None if each is None else each.batch for each in rewritten] == log
    assert one_pass.unreadable == 2


def test_an_entry_that_says_another_count_than_its_batch_stays() -> None:
    body = entry_of(put(0, (None, b"1"), (None, b"2"))).body
    batch = foreign_batch(0x50, (body,), 3, timestamp_ms=1, producer_id=-1, producer_epoch=-1)
    assert rewritten(batch) == Rewritten(batch, 3, 1)


def test_a_hole_that_a_producer_has_sent_is_none_of_its_messages() -> None:
    payload = build_batch(
        [
            (SingleMessageMetadata(partition_key=A, compacted_out=True), b"1"),
            (SingleMessageMetadata(partition_key=B), b"2"),
        ]
    )
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=NOW_MS, num_messages_in_batch=2)
    body = parse_body(build_body(metadata, payload)).body
    batch = foreign_batch(0x50, (body,), 2, timestamp_ms=NOW_MS, producer_id=-1, producer_epoch=-1)
    left = rewritten(batch, put(2, (A, b"3")))
    assert left is not None
    assert bytes(left.batch) == batch


def test_the_time_of_the_broker_stays_the_brokers() -> None:
    batch = with_max_timestamp(put(0, (A, None), (A, None), (B, b"1")), NOW_MS + 5, log_append_time=True)
    left, said = compacted([batch], rules())
    header = parse_batch_header(left[0])
    assert (header.log_append_time, header.max_timestamp, said[0].max_timestamp_ms) == (True, NOW_MS + 5, NOW_MS + 5)
    assert header.delete_horizon_ms is not None


def test_without_protobuf_an_entry_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "exacta.records.pulsar_records", None)
    keyed_records._pulsars_reader.cache_clear()
    try:
        batch = put(0, (A, b"1"), (A, b"2"))
        assert rewritten(batch) == Rewritten(batch, 2, NOW_MS)
    finally:
        keyed_records._pulsars_reader.cache_clear()


@given(body=st.binary(max_size=80), count=st.integers(1, 3))
def test_any_bytes_are_an_entry_or_stay(body: bytes, count: int) -> None:
    batch = foreign_batch(0x50, (body,), count, timestamp_ms=1, producer_id=-1, producer_epoch=-1)
    rewritten(batch)


@given(at=st.integers(0, 10_000), byte=st.integers(0, 255), codec=st.sampled_from(CompressionType.values()))
def test_damaged_entries_are_read_as_something_or_stay(at: int, byte: int, codec: int) -> None:
    body = bytearray(entry_of(put(0, (A, b"1" * 20), (B, None), (A, b"2" * 20), codec=codec)).body)
    body[at % len(body)] = byte
    batch = foreign_batch(0x50, (bytes(body),), 3, timestamp_ms=1, producer_id=-1, producer_epoch=-1)
    found = pulsar_records(batch, parse_batch_header(batch), 1 << 16)
    if found is not None and found.keys:
        left, _ = found.rewritten([0], 5)
        again = pulsar_records(left, parse_batch_header(left), 1 << 16)
        assert again is not None
        assert again.keys == found.keys[:1]
