"""Records are written and read as Kafka's own clients do it, and no bytes make the reader raise anything else."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from exacta.protocol.kafka.record_keys import UnreadableRecords, record_keys
from exacta.protocol.kafka.record_reading import Record, read_records
from exacta.protocol.kafka.record_writing import VARINTS, Header, encoded_headers, record, wrapped
from exacta.protocol.kafka.records import HEADER_SIZE

PLENTY = 100

Drawn = tuple[int, bytes | None, bytes | None, tuple[Header, ...]]
"""Timestamp, key, value, headers."""

names = st.text(max_size=4).map(str.encode)
small = st.none() | st.binary(max_size=200)
records = st.lists(
    st.tuples(
        st.integers(0, 1 << 62),  # aiokafka takes -1 for now
        small,
        small,
        st.lists(st.tuples(names, small), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=20,
)


def written(found: list[Drawn]) -> bytes:
    return b"".join(
        record(place, time_ms - found[0][0], key, value, encoded_headers(headers))
        for place, (time_ms, key, value, headers) in enumerate(found)
    )


@given(records)
def test_they_are_those_of_aiokafka(
    found: list[Drawn],
) -> None:
    theirs = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 30)
    for place, (time_ms, key, value, headers) in enumerate(found):
        named = [(name.decode(), header_value) for name, header_value in headers]
        assert theirs.append(place, time_ms, key, value, named) is not None
    plain = bytes(theirs.build())[HEADER_SIZE:]
    assert written(found) == plain
    assert read_records(plain, len(found), len(found) - 1, PLENTY) == [
        (place, time_ms - found[0][0], key, value, headers)
        for place, (time_ms, key, value, headers) in enumerate(found)
    ]


@given(records, st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=4), st.data())
def test_any_bytes_are_read_or_refused(
    found: list[Drawn],
    changes: list[tuple[float, int]],
    data: st.DataObject,
) -> None:
    plain = bytearray(written(found))
    for place, byte in changes:
        plain[int(place * len(plain))] = byte
    end = data.draw(st.just(len(plain)) | st.integers(0, len(plain)))
    try:
        got = read_records(bytes(plain[:end]), len(found), len(found) - 1, PLENTY)
    except UnreadableRecords:
        return
    assert [each[0] for each in got] == sorted({each[0] for each in got})
    keys = record_keys(bytes(plain[:end]), len(found), len(found) - 1)
    assert (keys.keys, keys.offset_deltas) == ([each[2] for each in got], [each[0] for each in got])


def test_numbers_may_be_longer_than_need_be() -> None:
    body = b"\x00\x00\x00" + b"\x82\x80\x00k" + b"\x82\x80\x00v" + b"\x82\x80\x00" + b"\x82\x80\x00a" + b"\x81\x80\x00"
    expected: Record = (0, 0, b"k", b"v", ((b"a", None),))
    assert read_records(VARINTS[len(body)] + body, 1, 0, PLENTY) == [expected]
    body = b"\x00" + b"\xff" * 9 + b"\x01" + b"\x80\x00" + b"\x81\x80\x00" + b"\x81\x80\x00" + b"\x00"
    assert read_records(VARINTS[len(body)] + body, 1, 0, PLENTY) == [(0, -(1 << 63), None, None, ())]


FAULTS = {
    "nothing": (b"", 1),
    "one more than is said": (record(0, 0, None, b"v") + b"\x00", 1),
    "one beyond the batch": (record(7, 0, None, b"v"), 1),
    "an offset before the last one": (record(1, 0, None, None) + record(0, 0, None, None), 2),
    "an offset below 0": (record(-1, 0, None, None), 1),
    "a length below 0": (b"\x01\x00\x00\x00\x01\x01\x00", 1),
    "a length beyond the batch": (b"\x7e\x00\x00\x00\x01\x01\x00", 1),
    "a key beyond the record": (b"\x0e\x00\x00\x00\x7e\x01\x00\x00", 1),
    "a value beyond the record": (b"\x0e\x00\x00\x00\x01\x7e\x00\x00", 1),
    "bytes behind the headers": (b"\x10\x00\x00\x00\x01\x01\x00\x00\x00", 1),
    "fewer headers than none": (b"\x0e\x00\x00\x00\x01\x01\x01\x00", 1),
    "headers without room": (b"\x0e\x00\x00\x00\x01\x01\x7e\x00", 1),
    "a header without a name": (b"\x10\x00\x00\x00\x01\x01\x02\x01\x00", 1),
    "a header's value beyond the record": (
        b"\x10\x00\x00\x00\x01\x01\x02\x00\x08" + record(1, 0, None, b"value"),
        2,
    ),
    "a number without an end": (b"\x7e" + b"\xff" * 63, 1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault: str) -> None:
    plain, count = FAULTS[fault]
    with pytest.raises(UnreadableRecords):
        read_records(plain, count, 1 if count == 2 else 0, PLENTY)


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-(1 << 63), (1 << 63) - 1))
def test_sums_wrap_in_64_bits(one: int, other: int) -> None:
    assert wrapped(one + other) == int.from_bytes(((one + other) % (1 << 64)).to_bytes(8), signed=True)
