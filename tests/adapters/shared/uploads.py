"""Segments that a local journal has written, put as the objects of a shared one."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from crc32c import crc32c

from exacta.adapters.local import LocalJournal
from exacta.adapters.local.format import INDEX_SUFFIX, SEGMENT_SUFFIX, SNAPSHOT_SUFFIX, positions_of, segments_of
from exacta.adapters.local.index.sealed_segment import read_header
from exacta.adapters.local.index.segment_index import map_segment_index
from exacta.adapters.local.index.segment_rows import Segment
from exacta.ports.journal import Buffer, JournalEntry
from exacta.ports.shared import CatalogEntry, CatalogSeen, Kind, Missing, StoreFailed
from simulation.disk.in_place import open_journal
from simulation.disk.simulated import SimulatedDisk
from tests.adapters.turns import Turns, append


class DictStore:
    """Objects in a dictionary, which counts what is asked for."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.gets: list[tuple[str, int, int | None]] = []
        self.is_away = False

    def put(self, key: str, data: Sequence[Buffer]) -> None:
        self.objects[key] = b"".join(data)

    def get(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        self.gets.append((key, start, size))
        if self.is_away:
            raise StoreFailed("503")
        if key not in self.objects:
            raise Missing(f"there is no object {key}")
        return self.objects[key][start : None if size is None else start + size]

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.objects.pop(key, None)

    def close(self) -> None:
        """Nothing is open."""


def written(turns: Turns, entries: Sequence[JournalEntry], segment_bytes: int = 2000) -> tuple[SimulatedDisk, int]:
    """Return the disk of a local journal with these entries, a group each, and where its last segment begins."""
    disk = SimulatedDisk()
    journal: LocalJournal = open_journal(disk, turns.call_soon, segment_bytes=segment_bytes)
    for entry in entries:
        append(turns, journal, entry)
    journal.close()
    turns.drain()
    return disk, segments_of(disk.names(), SEGMENT_SUFFIX)[-1].base


def upload(disk: SimulatedDisk, store: DictStore) -> list[CatalogEntry]:
    """Put all sealed segments of a directory as objects."""
    entries: list[CatalogEntry] = []
    for segment_id, _ in pairwise(segments_of(disk.names(), SEGMENT_SUFFIX)):
        segment = Segment(*segment_id)
        header = read_header(disk, segment)
        found = map_segment_index(disk, segment.index_name, header.mark)
        assert found is not None
        data, index = disk.content(segment.name), disk.content(segment.index_name)
        key = f"segments/{segment.name}"
        store.put(key, [data])
        store.put(key + INDEX_SUFFIX, [index])
        entries.append(
            CatalogEntry(
                key,
                Kind.CLEANED if segment.generation else Kind.WRITTEN,
                segment.base,
                found.end,
                segment.generation,
                found.last_checksum,
                len(data),
                crc32c(data),
                len(index),
                crc32c(index),
            )
        )
    for position in positions_of(disk.names(), SNAPSHOT_SUFFIX):
        name = f"{position:020d}{SNAPSHOT_SUFFIX}"
        data = disk.content(name)
        store.put(name, [data])
        entries.append(CatalogEntry(name, Kind.SNAPSHOT, position, position, 0, 0, len(data), crc32c(data)))
    return entries


def seen(version: int, entries: Sequence[CatalogEntry]) -> CatalogSeen:
    """Return a catalog of these entries, whose tail begins behind the last of them."""
    ends = [each.end for each in entries if each.kind <= Kind.CLEANED]
    return CatalogSeen(version, max(ends, default=0), entries)
