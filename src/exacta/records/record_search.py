"""The record of a time in one batch of the log.

Owns which record of a batch is the first one of a time or later, and which has the latest time. A Pulsar batch
has one time for all of its messages, and so has a batch with the broker's time. Another batch is opened.
"""

from typing import Final

from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.compression import NONE
from exacta.protocol.kafka.record_times import RecordTime as RecordTime  # the front knows no protocol
from exacta.protocol.kafka.record_times import record_times
from exacta.protocol.kafka.records import HEADER_SIZE, MAGIC, BatchHeader, CorruptBatch, opened, parse_batch_header
from exacta.records.admission import MAX_DECOMPRESSED_BYTES
from exacta.records.work import work_bytes

_BEFORE_ANY: Final = -2
"""The latest time is -1, which is none, or later, as with Apache Kafka."""

LATEST: Final = None
"""This stands for the latest time of all."""


class Unseen(Exception):
    """The records cannot be read: the batch was admitted by an older version, which did not look at them."""


def search_bytes(batch: Buffer) -> int | None:
    """Return the work of a search in this batch, in bytes; None: it is compressed, and nobody knows."""
    header = parse_batch_header(batch)
    if _has_one_time(header):
        return 0
    return work_bytes(len(batch), header.record_count) if header.codec == NONE else None


def find_record(batch: Buffer, timestamp_ms: int | None, start_offset: int) -> RecordTime | None:
    """Find the first record at `start_offset` or later with this time or a later one; `LATEST`: with the latest time.

    None if there is none. Raises `Unseen`.
    """
    header = parse_batch_header(batch)
    if _has_one_time(header):
        if timestamp_ms is not None and header.max_timestamp < timestamp_ms:
            return None
        return RecordTime(max(header.base_offset, start_offset), header.max_timestamp)
    found: RecordTime | None = None
    try:
        for record in record_times(_plain(batch, header), header):
            if record.offset < start_offset:
                continue
            if timestamp_ms is not None:
                if record.timestamp_ms >= timestamp_ms:
                    return record
            elif record.timestamp_ms > (_BEFORE_ANY if found is None else found.timestamp_ms):
                found = record
    except CorruptBatch as error:
        raise Unseen(str(error)) from error
    return found


def _has_one_time(header: BatchHeader) -> bool:
    return header.log_append_time or header.magic != MAGIC


def _plain(batch: Buffer, header: BatchHeader) -> Buffer:
    if header.codec == NONE:
        return memoryview(batch)[HEADER_SIZE:]
    return opened(batch, header, MAX_DECOMPRESSED_BYTES)
