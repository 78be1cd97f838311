"""The segments of a shared journal: what the catalog says that there are, and behind them those of the tail.

This module keeps `Index` and the list of segments in step with the catalog. A change is prepared where one may block,
since the indexes of new segments are fetched, and taken in on the event loop in one step.

Theory of operation. Most changes are small: a segment of the tail has become an object, neighbours
were cleaned, a beginning was dropped, streams were compacted. Each is one call of the index. New compacted segments are
taken in first: what is cleaned after a compaction lacks what that has. Where a broker has missed so much that the
changes cannot be told apart, the index is made again of all segments, as at a start.

A segment of the tail that a broker has only followed in part may be an object already. Then its index has more than was
followed, which does no harm: readers are shown what the engine has applied.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from exacta.adapters.local.files import Files
from exacta.adapters.local.format import SegmentId
from exacta.adapters.local.index.segment_index import pack_segment_index, unpack_segment_index
from exacta.adapters.local.index.segment_rows import DamagedIndex, Segment, SegmentIndex
from exacta.adapters.local.index.stream_index import Index
from exacta.adapters.local.opening import replay
from exacta.adapters.local.opening.segment_scan import SegmentScan
from exacta.adapters.local.snapshots import snapshot_files
from exacta.adapters.shared.blocks import Gone
from exacta.adapters.shared.files import ObjectFiles, segment_id
from exacta.ports.journal import JournalDamaged
from exacta.ports.shared import CatalogEntry, CatalogSeen, Kind

logger = logging.getLogger(__name__)


class PreparedCatalog(NamedTuple):
    """A catalog whose new segments are open, by key."""

    seen: CatalogSeen
    opened: Mapping[str, Segment]


class Replay(NamedTuple):
    """The latest sound snapshot and its position, and the events from there on that are in objects."""

    position: int
    blob: bytes | None
    events: Iterator[bytes]


class _Changes(NamedTuple):
    """The steps that turn the present list of segments into another one."""

    appended: Sequence[Segment]
    replaced: Sequence[tuple[Sequence[Segment], Segment | None]]


def open_object(files: Files, wanted: SegmentId) -> Segment:
    """Return a segment of the catalog with its index mapped; look-ups check what they use. Raises JournalDamaged.

    It is told by its key, and its index by a checksum in the catalog: its own mark need not be fetched.
    """
    assert isinstance(files, ObjectFiles)
    return open_entry(files, files.entry(wanted))


def open_entry(files: ObjectFiles, entry: CatalogEntry) -> Segment:
    """Return the segment that an entry is, with its index; make that again from it if it is damaged or lost."""
    segment = Segment(*segment_id(entry))
    segment.size = entry.size
    segment_index: SegmentIndex | None
    try:
        segment_index = unpack_segment_index(segment.index_name, files.map_index(entry), None)
        if segment_index is None:
            raise JournalDamaged(f"the index of object {entry.key} is not of this version")
    except (Gone, JournalDamaged) as error:
        logger.warning("%s; it is made again from object %s", error, entry.key)
        segment_index = _made_again(files, entry, segment)
    if entry.kind is not Kind.COMPACTED and (segment_index.end, segment_index.last_checksum) != (
        entry.end,
        entry.last_checksum,
    ):
        raise JournalDamaged(f"object {entry.key} does not end where the catalog says")
    segment.seal(segment_index)
    return segment


def _made_again(files: ObjectFiles, entry: CatalogEntry, segment: Segment) -> SegmentIndex:
    """Make the index of an object again from its groups; raise OSError, JournalDamaged."""
    handle = files.open_entry(entry)
    try:
        scan = SegmentScan(files, handle)
        if scan.header is None or scan.header.base != segment.base:
            raise JournalDamaged(f"object {entry.key} does not begin as a segment of {segment.base}")
        for group in scan.groups():
            for placed in group.entries:
                for row in placed.rows:
                    segment.add(group.payload_position + placed.payload_start, row)
        if scan.fault is not None:
            raise JournalDamaged(f"object {entry.key}, byte {scan.fault.offset}: {scan.fault.reason}")
        mark = scan.header.mark
        end, last_checksum = scan.header.end, scan.header.last_checksum
        if not scan.header.was_written_at_once:
            end, last_checksum = scan.end, scan.last_checksum
    finally:
        files.close(handle)
    data = b"".join(pack_segment_index(segment.growing, mark, end, last_checksum))
    files.keep_index(entry, data)
    segment_index = unpack_segment_index(segment.index_name, memoryview(data), mark)
    assert segment_index is not None
    return segment_index


class Catalog:
    """The segments of one broker's journal; every method but `prepare`, `replay` and `events` is the event loop's."""

    def __init__(self, files: ObjectFiles, fetches: int = 1) -> None:
        """Begin without a catalog: `prepare` and `take` one. It fetches `fetches` indexes at a time."""
        self._files = files
        self._fetches = fetches
        self.on_damage: Callable[[DamagedIndex], None] = lambda damage: None
        self.index = self._new_index()
        self.segments: list[Segment] = []
        """The segments of the catalog, then those of the tail, of which the last one grows."""
        self.compacted: list[Segment] = []
        self.entries: dict[str, CatalogEntry] = {}
        """The present entries by key."""
        self.durable: dict[int, int | None] = {}
        """The positions of the snapshots and of the tail, and the checksums of the groups that end there."""
        self.version = -1
        self.tail_from = 0
        self._by_key: dict[str, Segment] = {}

    def _new_index(self) -> Index:
        index = Index(lambda segment: segment.release(self._files))
        index.on_damage = lambda damage: self.on_damage(damage)
        return index

    @property
    def last_checksum(self) -> int | None:
        """The checksum of the last group before `tail_from`; None: all before it is dropped, so that nobody knows."""
        ends = [each for each in self.entries.values() if each.kind <= Kind.CLEANED and each.end == self.tail_from]
        if ends:
            return ends[0].last_checksum
        return 0 if self.tail_from == 0 else None

    # --- changes ------------------------------------------------------------------------------------------------------

    def prepare(self, seen: CatalogSeen) -> PreparedCatalog:
        """Open the segments that are new, which blocks; any thread may call. Raises OSError, JournalDamaged."""
        by_key = self._by_key
        new = [each for each in seen.entries if each.kind is not Kind.SNAPSHOT and each.key not in by_key]
        if min(self._fetches, len(new)) <= 1:
            segments = [open_entry(self._files, each) for each in new]
        else:
            with ThreadPoolExecutor(min(self._fetches, len(new)), "exacta-indexes") as threads:
                segments = list(threads.map(partial(open_entry, self._files), new))
        return PreparedCatalog(seen, {entry.key: segment for entry, segment in zip(new, segments, strict=True)})

    def take(self, prepared: PreparedCatalog) -> None:
        """Find batches, from now on, where this catalog says that they are; raise JournalDamaged."""
        seen = prepared.seen
        if seen.version <= self.version:
            return
        compacted = sorted((each for each in seen.entries if each.kind is Kind.COMPACTED), key=lambda each: each.base)
        log = self._note_log(prepared)
        self._follow(log, [self._by_key[each.key] for each in compacted])

    def follow_log(self, prepared: PreparedCatalog) -> None:
        """Know this catalog, which differs in one change of this broker's own, and not in its compacted segments."""
        index = self.index
        self._follow(self._note_log(prepared), list(self.compacted))
        assert self.index is index, "a leader changes one thing at a time"

    def _note_log(self, prepared: PreparedCatalog) -> list[Segment]:
        """Know this catalog; return its segments, but for compacted ones, in order of position."""
        seen = prepared.seen
        log = sorted((each for each in seen.entries if each.kind <= Kind.CLEANED), key=lambda each: each.base)
        _check_order(log, seen.tail_from)
        self.note(prepared)
        self._seal_tail(log)
        return [self._by_key[each.key] for each in log]

    def note(self, prepared: PreparedCatalog) -> None:
        """Know this catalog; the caller brings the index and the lists of segments in step with it."""
        seen, opened = prepared
        entries = {entry.key: entry for entry in seen.entries}
        gone = [entry for key, entry in self.entries.items() if key not in entries]
        self._by_key = {key: each for key, each in {**self._by_key, **opened}.items() if key in entries}
        self.entries, self.version, self.tail_from = entries, seen.version, seen.tail_from
        self.durable = {each.end: each.last_checksum for each in seen.entries if each.kind is Kind.SNAPSHOT}
        self.durable[self.tail_from] = self.last_checksum
        self._files.show(entries.values())
        self._files.forget(gone)

    def key_of(self, segment: Segment) -> str:
        """Return the key of the object that a segment is."""
        return next(key for key, each in self._by_key.items() if each is segment)

    def _seal_tail(self, log: Sequence[CatalogEntry]) -> None:
        """Let segments of the tail that are objects now be looked up there."""
        known = set(map(id, self._by_key.values()))
        growing = {each.base: (each, follows) for each, follows in pairwise(self.segments) if each.index is None}
        for entry in log:
            segment, follows = growing.get(entry.base, (None, None))
            opened = self._by_key[entry.key]
            if segment is None or follows is None or id(segment) in known:
                continue
            if follows.base == entry.end and entry.kind is Kind.WRITTEN and opened.index is not None:
                segment.size = opened.size
                segment.seal(opened.index)
                self._by_key[entry.key] = segment

    def _follow(self, log: list[Segment], compacted: list[Segment]) -> None:
        tail = [each for each in self.segments if each.index is None and each.base >= self.tail_from]
        changes = self._changes(log, tail)
        new_compacted = [each for each in compacted if each not in self.compacted]
        if changes is None:
            self._build([*log, *tail], compacted)
            return
        for segment in changes.appended:
            self.index.add_segment(segment)
        for segment in new_compacted:
            self.index.add_compacted(segment)
        for old, new in changes.replaced:
            self.index.replace(old, new)
        for segment in [each for each in self.compacted if each not in compacted]:
            self.index.drop_compacted(segment)
        self.segments[:] = [*log, *tail]
        self.compacted[:] = compacted

    def _changes(self, log: Sequence[Segment], tail: Sequence[Segment]) -> _Changes | None:
        """Return what has changed; None: too much to tell."""
        replaced: list[tuple[Sequence[Segment], Segment | None]] = []
        present = list(self.segments)
        known = {id(each) for each in present}
        kept = {id(each) for each in (*log, *tail)}
        appended: list[Segment] = []
        for new in log:
            if id(new) in known:
                continue
            covered = [each for each in present if new.base <= each.base < _end(new)]
            if not covered:
                if tail or (present and present[-1].base >= new.base):
                    return None
                appended.append(new)
                continue
            is_whole = all(each.index is not None and id(each) not in kept for each in covered)
            if not is_whole or covered[0].base != new.base or _end(covered[-1]) != _end(new):
                return None
            replaced.append((covered, new))
        seen = {id(each) for old, _ in replaced for each in old} | kept
        dropped = [each for each in present if id(each) not in seen]
        if dropped:
            if dropped != present[: len(dropped)] or any(each.index is None for each in dropped):
                return None
            replaced.append((dropped, None))
        return _Changes(appended, replaced)

    def _build(self, segments: list[Segment], compacted: list[Segment]) -> None:
        self.index = self._new_index()
        for segment in segments:
            self.index.add_segment(segment)
        for segment in compacted:
            self.index.add_compacted(segment)
        self.segments[:] = segments
        self.compacted[:] = compacted

    def begin_segment(self, base: int) -> Segment:
        """Take in a segment of the tail, behind all others; rows are added to it from now on."""
        segment = Segment(base)
        self.segments.append(segment)
        self.index.add_segment(segment)
        return segment

    # --- events -------------------------------------------------------------------------------------------------------

    def replay(self) -> Replay:
        """Return the latest snapshot, and the events behind it in objects; blocks. Raises as `Journal.replay` does."""
        position, blob = snapshot_files.load_latest(self._files)
        return Replay(position, blob, self.events(position, self.tail_from))

    def events(self, position: int, end: int) -> Iterator[bytes]:
        """Yield the events of objects from `position` to `end`, boundaries of groups; blocks.

        Raises JournalDamaged where they are gone or altered, OSError where they cannot be read.
        """
        sealed = [each for each in self.segments if each.index is not None]
        if position >= end:
            return
        yield from replay.events(self._files, replay.segments_after(self._files, sealed, position), position, end)

    def checksum_before(self, position: int) -> int | None:
        """Return the checksum of the group that ends at `position`, before the tail; blocks.

        None: it is not known, since what is there was cleaned. 0: no group ends there. Raises as `events` does.
        """
        if position == 0:
            return 0
        log = [each for each in self.entries.values() if each.kind <= Kind.CLEANED]
        entry = next((each for each in log if each.base < position <= each.end), None)
        if entry is None or (entry.end != position and entry.kind is Kind.CLEANED):
            return None
        if entry.end == position:
            return entry.last_checksum
        handle = self._files.open_entry(entry)
        try:
            scan = SegmentScan(self._files, handle)
            reached = any(group.end >= position for group in scan.groups())
        finally:
            self._files.close(handle)
        if scan.fault is not None or not reached:
            raise JournalDamaged(f"object {entry.key} is not what was written")
        return scan.last_checksum if scan.end == position else 0


def _end(segment: Segment) -> int:
    """Return where a sealed segment ends; -1: it is not sealed."""
    return -1 if segment.index is None else segment.index.end


def _check_order(log: Sequence[CatalogEntry], tail_from: int) -> None:
    """Raise JournalDamaged if segments are missing between these."""
    for each, following in pairwise(log):
        if each.end != following.base:
            raise JournalDamaged(f"the catalog has no object from position {each.end} to {following.base}")
    if log and log[-1].end != tail_from:
        raise JournalDamaged(f"the catalog has no object from position {log[-1].end} to {tail_from}")
