"""Filter markers and aborted transactions out of a fetched range, as every consumer must. The module is pure.

Theory of operation (KIP-98 §Consumer): a reply lists the aborted transactions that overlap its range, as (producer
id, first offset). Batches are walked in offset order; reaching the first offset of an aborted transaction makes its
producer *aborted*, and its abort marker ends that. Transactional batches of an aborted producer are skipped, and
control batches always are. Offsets therefore have gaps, and a range may hold no record at all.
"""

from collections.abc import Iterable, Iterator

from exacta.protocol.kafka.records import BatchHeader, iter_batches

# Key of a control record: version, then type (int16 each); type 0 aborts, 1 commits.
_ABORT_MARKER = 0
_BATCH_HEADER_BYTES = 61


def visible_batches(
    records: memoryview, aborted: Iterable[tuple[int, int]], *, committed_only: bool
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield the batches of `records` that hold data for the reader.

    `aborted` are (producer id, first offset) pairs of the same reply, in any order. Without `committed_only` only
    control batches are left out.
    """
    ahead = sorted(aborted, key=lambda entry: entry[1], reverse=True) if committed_only else []
    aborted_producers: set[int] = set()
    for header, batch in iter_batches(records):
        last_offset = header.base_offset + header.last_offset_delta
        while ahead and ahead[-1][1] <= last_offset:
            aborted_producers.add(ahead.pop()[0])
        if header.control:
            if is_abort_marker(batch):
                aborted_producers.discard(header.producer_id)
        elif not (header.transactional and header.producer_id in aborted_producers):
            yield header, batch


def next_offset(records: memoryview, otherwise: int) -> int:
    """Return the offset after the last whole batch of `records`, or `otherwise` where there is none."""
    for header, _ in iter_batches(records):
        otherwise = header.base_offset + header.last_offset_delta + 1
    return otherwise


def is_abort_marker(batch: memoryview) -> bool:
    """Return whether a control batch ends its transaction by aborting it."""
    # One record: length, attributes (1 byte), timestamp delta, offset delta, key length, key.
    at = _skip_varint(batch, _BATCH_HEADER_BYTES) + 1
    for _ in range(3):
        at = _skip_varint(batch, at)
    return int.from_bytes(batch[at + 2 : at + 4], "big") == _ABORT_MARKER


def _skip_varint(buffer: memoryview, at: int) -> int:
    while buffer[at] & 0x80:
        at += 1
    return at + 1
