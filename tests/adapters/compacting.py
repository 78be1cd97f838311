"""Batches for the journals' compaction tests, and what compacts them: plain text, one record each."""

from collections.abc import Iterator
from zlib import crc32

from exacta.ports.compaction import Buffer, Rewritten, Rules
from exacta.ports.journal import IndexEntry, JournalEntry

RULES = Rules(now_ms=0, delete_retention_ms=0)


def keyed(stream: int, offset: int, key: str, size: int = 200, timestamp_ms: int = 1000) -> JournalEntry:
    """Make an entry of one record, whose batch has some size; its timestamp grows with its offset."""
    batch = f"{offset}:{key}=".encode().ljust(size, b"v")
    return JournalEntry(b"e", (batch,), (IndexEntry(stream, offset, offset, timestamp_ms + offset, 0, size, 1),))


class LastOfEachKey:
    """A batch goes if its key comes again; the last one stays, emptied."""

    unreadable = 0

    def __init__(self, slice_number: int, slice_count: int) -> None:
        self._slice = slice_number, slice_count
        self._last: dict[bytes, int] = {}

    def _parsed(self, batch: Buffer) -> tuple[int, bytes]:
        offset, _, rest = bytes(batch).partition(b":")
        return int(offset), rest.partition(b"=")[0]

    def check(self, batch: Buffer, first_offset: int, last_offset: int) -> None:
        offset, _ = self._parsed(batch)
        if offset != first_offset or b"\0" in bytes(batch):
            raise ValueError("it is altered")

    def moved(self, batch: Buffer, first_offset: int, append_time_ms: int) -> Buffer:
        _, _, rest = bytes(batch).partition(b":")
        return b"%d:%s" % (first_offset, rest)

    def note(self, batch: Buffer) -> None:
        offset, key = self._parsed(batch)
        number, count = self._slice
        if sum(key) % count == number:
            self._last[key] = offset

    def rewrite(self, batch: Buffer, is_last: bool) -> Rewritten | None:
        offset, key = self._parsed(batch)
        if not key or self._last.get(key, -1) > offset:
            return Rewritten(b"%d:" % offset, 0, -1) if is_last else None
        return Rewritten(batch, 1, 1000 + offset)


def last_of_each_key(rules: Rules, slice_number: int = 0, slice_count: int = 1) -> LastOfEachKey:
    """Implement `ports.compaction.Compact`."""
    return LastOfEachKey(slice_number, slice_count)


def keys_of(batches: bytes) -> Iterator[tuple[int, str]]:
    """Yield offset and key of each batch."""
    for part in batches.replace(b"v", b"").split(b"="):
        if part:
            offset, _, key = part.decode().partition(":")
            yield int(offset), key


class Thinned:
    """Of any bytes some batches go, some are halved: as their checksums say."""

    unreadable = 0

    def check(self, batch: Buffer, first_offset: int, last_offset: int) -> None:
        pass

    def moved(self, batch: Buffer, first_offset: int, append_time_ms: int) -> Buffer:
        return b"%d, %d: %s" % (first_offset, append_time_ms, bytes(batch))

    def note(self, batch: Buffer) -> None:
        pass

    def rewrite(self, batch: Buffer, is_last: bool) -> Rewritten | None:
        chance = crc32(batch) % 4
        if chance == 0:
            return Rewritten(b"emptied", 0, -1) if is_last else None
        if chance == 1:
            return Rewritten(bytes(batch)[: len(batch) // 2 + 1], 1, crc32(batch) % 50)
        return Rewritten(batch, 1, crc32(batch) % 50)


def thinned(rules: Rules, slice_number: int = 0, slice_count: int = 1) -> Thinned:
    """Implement `ports.compaction.Compact`."""
    return Thinned()
