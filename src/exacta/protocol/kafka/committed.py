"""The filter of KIP-98: which batches of a log a reader of committed records sees. Pure, and written once.

Consumers, compaction and the delivery of records apply it. It lies here because clients import only the protocol.

Theory of operation. An aborted transaction is told as producer id, first offset and, where it is known, the offset of
its marker. A transactional batch of the producer between the two is aborted. A fetch tells no offsets of markers: a
reader finds the markers while it walks over the batches in the order of their offsets, and each ends its range. Control
batches are never shown. Offsets therefore have gaps, and a range may hold no record at all.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from exacta.protocol.kafka.records import HEADER_SIZE, BatchHeader, iter_batches

NOT_YET_MET: Final = (1 << 63) - 1
"""The offset of a marker that the reader has not come to."""

# Key of a control record: version, then type (int16 each); type 0 aborts, 1 commits.
_ABORT_MARKER = 0


class AbortedTransactions:
    """The aborted transactions of one partition: producer id, first offset, and offset of the marker."""

    def __init__(self, aborted: Iterable[tuple[int, int, int]]) -> None:
        self._of_producer: dict[int, tuple[list[int], list[int]]] = {}
        self._marker_offsets: set[int] = set()
        for producer_id, first, last in sorted(aborted):
            firsts, lasts = self._of_producer.setdefault(producer_id, ([], []))
            firsts.append(first)
            lasts.append(last)
            self._marker_offsets.add(last)

    @classmethod
    def of_fetch(cls, aborted: Iterable[tuple[int, int]]) -> "AbortedTransactions":
        """Take what a fetch tells: producer ids and first offsets."""
        return cls((producer_id, first, NOT_YET_MET) for producer_id, first in aborted)

    def has(self, header: BatchHeader) -> bool:
        """Return whether the batch's records were aborted."""
        if not header.transactional or header.producer_id not in self._of_producer:
            return False
        firsts, lasts = self._of_producer[header.producer_id]
        place = bisect_right(firsts, header.base_offset) - 1
        return place >= 0 and header.base_offset < lasts[place]

    def ends(self, header: BatchHeader) -> bool:
        """Return whether the batch is the marker of one of them, as far as their markers are known."""
        return header.base_offset in self._marker_offsets

    def end(self, marker: BatchHeader) -> None:
        """Note that a transaction of the producer was aborted by this marker."""
        firsts, lasts = self._of_producer.get(marker.producer_id, ([], []))
        place = bisect_right(firsts, marker.base_offset) - 1
        if place >= 0:
            lasts[place] = min(lasts[place], marker.base_offset)


def visible_batches(
    records: memoryview, aborted: Iterable[tuple[int, int]], *, committed_only: bool
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield the batches of `records` that hold data for the reader.

    `aborted` are (producer id, first offset) pairs of the same reply, in any order. Without `committed_only` only
    control batches are left out.
    """
    transactions = AbortedTransactions.of_fetch(aborted if committed_only else ())
    for header, batch in iter_batches(records):
        if header.control:
            if is_abort_marker(batch):
                transactions.end(header)
        elif not transactions.has(header):
            yield header, batch


def is_abort_marker(batch: memoryview) -> bool:
    """Return whether a control batch ends its transaction by aborting it."""
    # One record: length, attributes (1 byte), timestamp delta, offset delta, key length, key.
    at = _skip_varint(batch, HEADER_SIZE) + 1
    for _ in range(3):
        at = _skip_varint(batch, at)
    return int.from_bytes(batch[at + 2 : at + 4], "big") == _ABORT_MARKER


def _skip_varint(buffer: memoryview, at: int) -> int:
    while buffer[at] & 0x80:
        at += 1
    return at + 1
