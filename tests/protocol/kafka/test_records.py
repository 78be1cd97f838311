"""Record batch headers against batches that other libraries build and read."""

import struct
import warnings

import crc32c
import msgspec
import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from exacta.core.ids import Body
from exacta.protocol.kafka.batch_building import control_batch
from exacta.protocol.kafka.codec import DecodeError
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.records import (
    COMPRESSIONS,
    HEADER_SIZE,
    LOG_MAGICS,
    MAGIC,
    CorruptBatch,
    assign_offset,
    iter_batches,
    parse_batch_header,
    sound_batches,
    validate_batch,
    with_max_timestamp,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.memory_records import MemoryRecords

CRC_START = 21
NOT_CHECKSUMMED = {*range(8), *range(12, 16)}
"""Base offset and partition leader epoch: the bytes that a broker writes."""


def build(
    count: int = 3,
    *,
    compression: int = 0,
    transactional: bool = True,
    producer_id: int = 7,
    producer_epoch: int = 2,
    base_sequence: int = 5,
) -> bytes:
    """Build a batch with aiokafka."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=compression,
        is_transactional=transactional,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        batch_size=1 << 20,
    )
    for offset in range(count):
        builder.append(offset, timestamp=1000 + offset, key=b"key", value=b"value" * 100, headers=[])
    return bytes(builder.build())


def patched(batch: bytes, **fields: int) -> bytes:
    """Change header fields of a batch and make its checksum right again."""
    header = msgspec.structs.asdict(parse_batch_header(batch)) | fields
    changed = bytearray(struct.pack(">qiibIhiqqqhii", *header.values()) + batch[HEADER_SIZE:])
    struct.pack_into(">I", changed, CRC_START - 4, crc32c.crc32c(bytes(changed[CRC_START:])))
    return bytes(changed)


@pytest.mark.parametrize("compression", range(5))
def test_batches_of_aiokafka_are_valid(compression: int) -> None:
    batch = build(4, compression=compression)
    header = validate_batch(memoryview(batch))
    theirs = DefaultRecordBatch(batch)
    assert header == parse_batch_header(batch)
    assert (header.base_offset, header.record_count, header.last_offset_delta) == (0, 4, 3)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 5)
    assert (header.transactional, header.control) == (True, False) == (theirs.is_transactional, theirs.is_control_batch)
    assert header.compression == COMPRESSIONS[compression]
    assert not header.log_append_time
    assert (header.base_timestamp, header.max_timestamp) == (theirs.first_timestamp, theirs.max_timestamp)
    assert (header.crc, header.size, header.last_sequence) == (theirs.crc, len(batch), 8)


def test_a_batch_without_a_producer_id() -> None:
    header = validate_batch(build(2, transactional=False, producer_id=-1, producer_epoch=-1, base_sequence=-1))
    assert (header.producer_id, header.last_sequence, header.transactional) == (-1, -1, False)


def test_sequences_wrap_to_zero() -> None:
    assert validate_batch(build(3, base_sequence=(1 << 31) - 2)).last_sequence == 0
    assert validate_batch(build(1, base_sequence=(1 << 31) - 1)).last_sequence == (1 << 31) - 1


GOOD = build()

FOREIGN = 0x50
"""The magic of a body that is not Kafka's."""

REFUSED = {
    "empty": (b"", ErrorCode.INVALID_RECORD),
    "two batches": (GOOD + GOOD, ErrorCode.INVALID_RECORD),
    "garbage behind": (GOOD + b"\0" * 12, ErrorCode.CORRUPT_MESSAGE),
    "truncated records": (GOOD[:-1], ErrorCode.INVALID_RECORD),
    "truncated header": (GOOD[: HEADER_SIZE - 1], ErrorCode.INVALID_RECORD),
    "length below the header": (patched(GOOD, batch_length=48), ErrorCode.CORRUPT_MESSAGE),
    "negative length": (patched(GOOD, batch_length=-1), ErrorCode.CORRUPT_MESSAGE),
    "message set of Kafka 0.10": (patched(GOOD, magic=1), ErrorCode.INVALID_RECORD),
    "magic of the future": (patched(GOOD, magic=3), ErrorCode.CORRUPT_MESSAGE),
    "another body": (patched(GOOD, magic=FOREIGN), ErrorCode.CORRUPT_MESSAGE),
    "checksum": (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), ErrorCode.CORRUPT_MESSAGE),
    "no records": (patched(GOOD, record_count=0, last_offset_delta=-1), ErrorCode.INVALID_RECORD),
    "count and delta disagree": (patched(GOOD, record_count=4), ErrorCode.INVALID_RECORD),
    "control batch": (patched(GOOD, attributes=0x30), ErrorCode.INVALID_RECORD),
    "no epoch": (patched(GOOD, producer_epoch=-1), ErrorCode.INVALID_RECORD),
    "no sequence": (patched(GOOD, base_sequence=-1), ErrorCode.INVALID_RECORD),
    "transactional without producer": (patched(GOOD, producer_id=-1), ErrorCode.INVALID_RECORD),
    "unknown compression": (patched(GOOD, attributes=0x15), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_producer_may_not_send(case: str) -> None:
    records, code = REFUSED[case]
    with pytest.raises(CorruptBatch) as refusal:
        validate_batch(memoryview(records))
    assert refusal.value.error_code is code
    assert isinstance(refusal.value, DecodeError)


def test_a_log_may_hold_what_no_producer_may_send() -> None:
    """A reader of a log says which bodies it understands; a producer's batch is always Kafka's."""
    foreign = patched(GOOD, magic=FOREIGN, base_offset=0, partition_leader_epoch=0)
    assert parse_batch_header(foreign).magic == FOREIGN
    assert sound_batches(foreign, (0,)) == (len(foreign), "")
    size, fault = sound_batches(foreign, (0,), magics={MAGIC})
    assert (size, "magic 80" in fault) == (0, True)
    for read in (lambda: parse_batch_header(foreign, magics={MAGIC}), lambda: next(iter_batches(foreign))):
        with pytest.raises(CorruptBatch, match="magic 80; only 2 is served"):
            read()
    unknown = patched(GOOD, magic=FOREIGN + 1, base_offset=0, partition_leader_epoch=0)
    assert sound_batches(unknown, (0,))[0] == 0
    with pytest.raises(CorruptBatch, match="magic 81; only 2 and 80 is served"):
        parse_batch_header(unknown)
    assert {body.value for body in Body} == LOG_MAGICS


@pytest.mark.parametrize("length", [1, 11, 12, 20, len(GOOD) - 1])
def test_a_beginning_behind_the_batch_is_nothing(length: int) -> None:
    """As Apache Kafka has it, which stores the batch without it."""
    assert validate_batch(GOOD + GOOD[:length]).size == len(GOOD)


def test_every_flipped_bit_that_the_producer_wrote_is_noticed() -> None:
    for position in set(range(len(GOOD))) - NOT_CHECKSUMMED:
        damaged = bytearray(GOOD)
        damaged[position] ^= 0x10
        with pytest.raises(CorruptBatch):
            validate_batch(damaged)


def test_every_flipped_bit_of_what_was_placed_is_noticed() -> None:
    small = control_batch(7, 1, 2, commit=True, coordinator_epoch=0, timestamp_ms=3)
    other = control_batch(9, 1, 2, commit=False, coordinator_epoch=0, timestamp_ms=4)
    placed = small + other
    assert sound_batches(placed, (7, 9)) == (len(placed), "")
    for bit in range(8 * len(placed)):
        damaged = bytearray(placed)
        damaged[bit // 8] ^= 1 << bit % 8
        size, fault = sound_batches(damaged, (7, 9))
        assert (size, bool(fault)) == (0 if bit < 8 * len(small) else len(small), True), bit
    assert sound_batches(placed, (7,)) == (len(small), "")
    for length in range(len(placed)):
        size, fault = sound_batches(placed[:length], (7, 9))
        assert (size, bool(fault)) == (len(small) if length >= len(small) else 0, True)


def test_every_truncation_is_noticed() -> None:
    for length in range(len(GOOD)):
        with pytest.raises(CorruptBatch):
            validate_batch(memoryview(GOOD)[:length])


def test_an_offset_is_assigned_without_touching_the_records() -> None:
    records = memoryview(GOOD)
    buffers = assign_offset(records, 1 << 40, 6)
    assert [len(buffer) for buffer in buffers] == [16, len(GOOD) - 16]
    assert isinstance(buffers[1], memoryview)
    assert buffers[1].obj is GOOD
    stored = b"".join(buffers)
    header = validate_batch(stored)
    assert (header.base_offset, header.last_offset, header.partition_leader_epoch) == (1 << 40, (1 << 40) + 2, 6)
    assert stored[16:] == GOOD[16:]
    assert [record.offset for record in DefaultRecordBatch(stored)] == [(1 << 40) + delta for delta in range(3)]


@pytest.mark.parametrize(("commit", "kind"), [(True, "commit"), (False, "abort")])
def test_markers_are_read_by_others(commit: bool, kind: str) -> None:
    marker = control_batch(41, 7, 2, commit=commit, coordinator_epoch=-1, timestamp_ms=1234)
    assert len(marker) == 78

    ours = parse_batch_header(marker)
    assert (ours.size, ours.base_offset, ours.record_count, ours.base_sequence) == (78, 41, 1, -1)
    assert (ours.transactional, ours.control, ours.last_sequence) == (True, True, -1)

    aiokafka = DefaultRecordBatch(marker)
    assert aiokafka.validate_crc()
    assert aiokafka.is_control_batch
    assert aiokafka.is_transactional
    assert (aiokafka.producer_id, aiokafka.producer_epoch, aiokafka.base_sequence) == (7, 2, -1)
    (record,) = aiokafka
    assert (record.offset, record.timestamp) == (41, 1234)
    assert (record.key, record.value) == (bytes([0, 0, 0, commit]), b"\0\0\xff\xff\xff\xff")

    kafka_python = MemoryRecords(marker).next_batch()
    assert kafka_python.validate_crc()
    assert kafka_python.is_control_batch
    (control,) = kafka_python
    assert (control.offset, control.commit, control.abort) == (41, kind == "commit", kind == "abort")


def test_producers_may_not_send_markers() -> None:
    with pytest.raises(CorruptBatch) as refusal:
        validate_batch(control_batch(0, 7, 2, commit=True, coordinator_epoch=0, timestamp_ms=0))
    assert refusal.value.error_code is ErrorCode.INVALID_RECORD


def test_batches_that_follow_one_another() -> None:
    parts = [
        b"".join(assign_offset(build(2), 10)),
        control_batch(12, 7, 2, commit=True, coordinator_epoch=0, timestamp_ms=0),
        b"".join(assign_offset(build(5, compression=2), 13)),
    ]
    log = b"".join(parts)
    for length in range(len(log) + 1):
        found = list(iter_batches(memoryview(log)[:length]))
        whole = [part for index, part in enumerate(parts) if len(b"".join(parts[: index + 1])) <= length]
        assert [bytes(batch) for _, batch in found] == whole
        assert [header.base_offset for header, _ in found] == [10, 12, 13][: len(whole)]
        assert all(batch.obj is log for _, batch in found)


def test_a_header_that_is_none_ends_the_walk_with_an_error() -> None:
    walk = iter_batches(GOOD + bytes(HEADER_SIZE))
    assert next(walk)[1] == GOOD
    with pytest.raises(CorruptBatch):
        next(walk)
    with pytest.raises(CorruptBatch):
        list(iter_batches(patched(GOOD, batch_length=0)))


@pytest.mark.parametrize("compression", [0, 1])
def test_the_brokers_time_is_that_of_all_records(compression: int) -> None:
    stamped = with_max_timestamp(build(compression=compression), 5_000, log_append_time=True)
    assert validate_batch(stamped).log_append_time
    assert [record.timestamp for record in DefaultRecordBatch(bytearray(stamped))] == [5_000] * 3
    back = with_max_timestamp(stamped, 1_002, log_append_time=False)
    assert back == build(compression=compression)
