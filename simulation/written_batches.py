"""The batches that were written into each partition, as the journal was given them.

Owns a second copy of the log, of which nothing is ever compacted or deleted: what readers may miss of it is for
`analysis` and `watched` to say. What a crash takes away is taken away here when something else is written in its place.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from exacta.ports.journal import IndexEntry
from simulation.clients.batches import read_stored
from simulation.history import Partition


class WrittenBatch(NamedTuple):
    """One batch, with the bytes that it was given to the journal with."""

    first_offset: int
    last_offset: int
    max_timestamp_ms: int
    data: bytes


class Written:
    """All partitions, by id."""

    def __init__(self) -> None:
        self._streams: dict[int, list[WrittenBatch]] = defaultdict(list)

    def note(self, row: IndexEntry, payload: bytes) -> None:
        """Note a batch, which lies in this payload."""
        batches = self._streams[row.stream]
        while batches and batches[-1].last_offset >= row.first_offset:
            batches.pop()  # a crash had it
        data = payload[row.start : row.start + row.size]
        batches.append(WrittenBatch(row.first_offset, row.last_offset, row.max_timestamp_ms, data))

    def between(self, stream: int, offset: int, end_offset: int) -> Iterator[WrittenBatch]:
        """Yield the batches of a partition that lie there."""
        return (each for each in self._streams[stream] if offset <= each.first_offset < end_offset)

    def partition(self, stream: int, end_offset: int) -> Partition:
        """Return what readers would find who missed nothing."""
        found = Partition()
        of_open: dict[int, dict[int, bytes]] = defaultdict(dict)
        for batch in self.between(stream, 0, end_offset):
            for header, records, commits in read_stored(batch.data):
                producer_id = header.producer_id
                if header.control:
                    found.markers.append((header.base_offset, producer_id))
                    ended = of_open.pop(producer_id, {})
                    found.committed.update(ended if commits else {})
                    continue
                found.records += [(offset, value, producer_id) for offset, value in records]
                (of_open[producer_id] if header.transactional else found.committed).update(records)
        return found
