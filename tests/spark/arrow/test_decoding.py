"""Decoding by columns, against aiokafka's reader, which goes record by record."""

from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from exacta.protocol.kafka.records import assign_offset, iter_batches
from exacta.spark.arrow.decoding import CorruptRecords, Sheet
from tests.shares import examples

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def batch_of(records, *, codec="none", base_offset=0):
    """A record batch of (timestamp, key, value, headers) each."""
    builder = DefaultRecordBatchBuilder(2, CODECS[codec], 0, -1, -1, -1, 1 << 24)
    for index, (timestamp, key, value, headers) in enumerate(records):
        assert builder.append(index, timestamp, key, value, headers)
    return b"".join(bytes(part) for part in assign_offset(memoryview(bytes(builder.build())), base_offset))


def decoded(data, *, include_headers=True):
    """The records of batches that follow one another, decoded by columns, as rows."""
    fetched, rows, sheet = memoryview(data), [], Sheet("t-0")

    def put_down():
        columns = sheet.decode({"key", "value", "headers"} if include_headers else {"key", "value"})
        headers = columns.headers.to_pylist() if include_headers else [None] * len(columns.offsets)
        listed = (columns.keys.to_pylist(), columns.values.to_pylist(), columns.offsets, columns.timestamps_ms, headers)
        for key, value, offset, timestamp, header in zip(*listed, strict=True):
            pairs = [(entry["key"], entry["value"]) for entry in header or ()]
            rows.append((int(offset), int(timestamp), key, value, pairs))

    for header, batch in iter_batches(fetched):
        if not sheet.add(fetched, header, batch):
            put_down()
            sheet = Sheet("t-0")
            assert sheet.add(fetched, header, batch)
    put_down()
    return rows


def expected(data):
    return [
        (record.offset, record.timestamp, record.key, record.value, list(record.headers))
        for _, batch in iter_batches(data)
        for record in DefaultRecordBatch(bytes(batch))
    ]


payloads = st.none() | st.binary(max_size=12) | st.integers(60, 70).map(bytes) | st.integers(8190, 8200).map(bytes)
headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
timestamps = st.integers(-1, 1 << 44) | st.just(1_700_000_000_000)
codecs = st.sampled_from(sorted(CODECS))
records = st.tuples(timestamps, payloads, payloads, headers)


@settings(max_examples=examples(40))
@given(
    st.lists(
        st.tuples(st.lists(records, min_size=1, max_size=40), st.sampled_from(sorted(CODECS))), min_size=1, max_size=4
    )
)
def test_columns_hold_what_a_reader_of_records_reads(batches):
    data, offset = b"", 1 << 40
    for listed, codec in batches:
        data += batch_of(listed, codec=codec, base_offset=offset)
        offset += len(listed) + 3
    assert decoded(data) == expected(data)
    assert [row[:4] for row in decoded(data, include_headers=False)] == [row[:4] for row in expected(data)]


@pytest.mark.parametrize("codec", sorted(CODECS))
def test_long_runs_and_what_interrupts_them(codec):
    listed: list[Any] = [(1_700_000_000_000 + index // 7, b"%06d" % index, bytes(100), []) for index in range(20_000)]
    listed[500:500] = [(5, None, bytes(index), [("h", None)] * (index % 3)) for index in range(300)]
    data = batch_of(listed, codec=codec) + batch_of(listed[:3], codec=codec, base_offset=50_000)
    assert decoded(data) == expected(data)


def test_the_brokers_time_counts_where_it_is_set():
    data = bytearray(batch_of([(5, b"k", b"v", []), (9, b"k", b"v", [])]))
    data[22] |= 0x08  # attributes, second byte: log append time
    view = memoryview(bytes(data))
    ((header, batch),) = iter_batches(view)
    sheet = Sheet("t-0")
    with pytest.raises(CorruptRecords, match="the record batch at offset 0 of t-0 does not match its checksum"):
        sheet.add(view, header, batch)
    view = memoryview(with_checksum(data))
    ((header, batch),) = iter_batches(view)
    assert sheet.add(view, header, batch)
    columns = sheet.decode({"key", "value"})
    assert columns.timestamps_ms.tolist() == [9, 9]
    assert columns.timestamp_types.tolist() == [1, 1]


def with_checksum(data):
    import crc32c

    data = bytearray(data)
    data[17:21] = crc32c.crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


@settings(max_examples=examples(80))
@given(st.lists(records, min_size=1, max_size=30), st.data())
def test_records_that_make_no_sense_are_refused_not_guessed(listed, data):
    """A producer's fault, or malice: the checksum is right, the records are not."""
    whole = batch_of(listed)
    at = data.draw(st.integers(61, len(whole) - 1))
    length = data.draw(st.integers(1, 10))
    noise = data.draw(st.binary(min_size=length, max_size=length))
    broken = with_checksum((whole[:at] + noise + whole[at + length :])[: len(whole)])
    try:
        rows = decoded(broken)
    except CorruptRecords:
        return
    # What cannot be told from records is read, but never more than the batch holds.
    assert len(rows) == len(listed)
    assert sum(len(key or b"") + len(value or b"") for _, _, key, value, _ in rows) <= len(whole)


def test_a_batch_that_cannot_be_decompressed():
    data = bytearray(batch_of([(5, b"k", bytes(500), [])], codec="zstd"))
    data[61:65] = b"xxxx"
    with pytest.raises(CorruptRecords, match=r"cannot be decompressed \(zstd\)"):
        decoded(with_checksum(data))


def test_a_count_that_is_not_that_of_the_records():
    data = bytearray(batch_of([(5, b"k", b"v", [])] * 5))
    data[57:61] = (4).to_bytes(4, "big")
    with pytest.raises(CorruptRecords, match="bytes more or less than its records"):
        decoded(with_checksum(data))
