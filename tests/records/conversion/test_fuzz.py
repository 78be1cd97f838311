"""Any bytes are converted: nothing is raised, offsets stay, and bounds hold."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from exacta.core.ids import Body
from exacta.ports.record_format import LogEntry
from exacta.protocol.kafka.records import HEADER_SIZE, MAGIC_OFFSET, parse_batch_header, sound_batches
from exacta.records.conversion import to_kafka, to_pulsar
from exacta.records.pulsar_entries import entry_of
from tests.records.conversion.batches import kafka_batches, pulsar_entries, read_kafka, with_header
from tests.records.conversion.bounds import kafka_bound

ALLOWED_BYTES = 1 << 16
LARGEST_ENTRY = 1 << 12

changes = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=6)
ends = st.none() | st.floats(0, 1)
DELTA_AT, COUNT_AT = 23, 57


def mangled(batch: bytes, changed: list[tuple[float, int]], end: float | None) -> bytes:
    """Return the batch with other bytes behind its header, and cut off somewhere."""
    body = bytearray(batch[HEADER_SIZE:])
    for place, byte in changed if body else ():
        body[int(place * len(body))] = byte
    if end is not None:
        del body[int(end * len(body)) :]
    return batch[:HEADER_SIZE] + bytes(body)


def check_kafka(batch: bytes) -> None:
    before = parse_batch_header(batch)
    made = to_kafka(batch, allowed_bytes=ALLOWED_BYTES)
    assert len(made) <= kafka_bound(batch, allowed_bytes=ALLOWED_BYTES)
    after = parse_batch_header(made)
    assert (after.base_offset, after.last_offset_delta) == (before.base_offset, before.last_offset_delta)
    assert (after.max_timestamp, after.transactional) == (before.max_timestamp, before.transactional)
    assert sound_batches(made, (before.base_offset,), before.partition_leader_epoch) == (len(made), "")
    if before.last_offset_delta >= 0:
        read_kafka(made)


def check_pulsar(batch: LogEntry, singly: bool) -> None:
    header = parse_batch_header(batch.batch)
    at = header.base_offset
    for entry in to_pulsar(batch, singly=singly, allowed_bytes=ALLOWED_BYTES, largest_entry=LARGEST_ENTRY):
        assert entry.base_offset >= at
        at = entry.base_offset + entry.offset_count
        assert at <= max(header.last_offset, header.base_offset) + 1
        assert sound_batches(entry.batch, (entry.base_offset,)) == (len(entry.batch), "")
        found = entry_of(entry.batch)
        assert found.message_count == entry.offset_count
        assert len(found.body) <= LARGEST_ENTRY
        assert entry.gaps is not None
        for first, last in entry.gaps:
            assert entry.base_offset <= first <= last < at


@given(pulsar_entries(), changes, ends)
def test_any_entry_becomes_a_batch(entry: LogEntry, changed: list[tuple[float, int]], end: float | None) -> None:
    check_kafka(mangled(bytes(entry.batch), changed, end))


@given(st.binary(max_size=200))
def test_any_body_becomes_a_batch(body: bytes) -> None:
    head = struct.pack(">qiibIhiqqqhii", 40, HEADER_SIZE - 12 + len(body), 0, 0x50, 0, 0, 0, 5, 5, -1, -1, -1, 1)
    check_kafka(head + body)


@given(kafka_batches(), changes, ends, st.booleans())
def test_any_batch_becomes_entries(
    batch: LogEntry, changed: list[tuple[float, int]], end: float | None, singly: bool
) -> None:
    check_pulsar(batch._replace(batch=mangled(bytes(batch.batch), changed, end)), singly)


numbers = st.integers(-2, 12) | st.integers(-(1 << 31), (1 << 31) - 1)
batches = pulsar_entries() | kafka_batches()


@given(batches, st.integers(0, 0xFFFF), numbers, numbers, st.binary(min_size=26, max_size=26), st.booleans())
def test_any_header_is_believed(
    batch: LogEntry, attributes: int, delta: int, count: int, times: bytes, singly: bool
) -> None:
    changed = with_header(bytes(batch.batch), DELTA_AT - 2, struct.pack(">Hi", attributes, delta) + times)
    changed = with_header(changed, COUNT_AT, struct.pack(">i", count))
    if changed[MAGIC_OFFSET] == Body.PULSAR:
        check_kafka(changed)
    else:
        check_pulsar(batch._replace(batch=changed), singly)


@given(st.binary(max_size=100), st.booleans())
def test_what_is_no_batch_stays_as_it_is(data: bytes, singly: bool) -> None:
    entry = LogEntry(40, 1, data)
    assert to_kafka(data, allowed_bytes=9) == data
    assert kafka_bound(data) == len(data)
    assert to_pulsar(entry, singly=singly, allowed_bytes=9, largest_entry=9) in ([entry], [])
