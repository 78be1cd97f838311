"""Snapshots: the engine's state at a position, so that a replay need not begin at the beginning.

This module writes the snapshot files whole, keeps the last two, and passes over a damaged one. The engine makes the
blob, and the fold that makes the next one from the last one and the events since.
"""

import logging
from collections.abc import Sequence

from exacta.adapters.local.files import Files, read_file
from exacta.adapters.local.format import (
    SNAPSHOT_SUFFIX,
    SegmentId,
    file_name,
    pack_snapshot,
    positions_of,
    temporary_name,
    unpack_snapshot,
)
from exacta.adapters.local.index.segment_rows import Segment
from exacta.adapters.local.opening import replay
from exacta.adapters.local.writer import put_in_place, write_file, write_temporary
from exacta.ports.journal import Fold

KEPT = 2  # the second, since the first may turn out damaged

logger = logging.getLogger(__name__)


def positions(files: Files) -> list[int]:
    """Return the positions of all snapshots, ascending."""
    return positions_of(files.names(), SNAPSHOT_SUFFIX)


def load_latest(files: Files, end: int | None = None) -> tuple[int, bytes | None]:
    """Return position and blob of the latest sound snapshot, of those up to `end`; 0 and None if there is none."""
    for position in reversed(positions(files)):
        if end is not None and position > end:
            continue
        blob = _sound_blob(files, position)
        if blob is not None:
            return position, blob
        # Case 9 of the table in docs/reference/journal-format.md.
        name = file_name(position, SNAPSHOT_SUFFIX)
        logger.warning("%s is damaged; the replay begins at the snapshot before it", files.directory / name)
    return 0, None


def _sound_blob(files: Files, position: int) -> bytes | None:
    """Return the blob of a snapshot; None: it is damaged, or lost, as an object may be that has a name."""
    try:
        return unpack_snapshot(read_file(files, file_name(position, SNAPSHOT_SUFFIX)), position)
    except FileNotFoundError:
        return None


def replays_begin_at(files: Files) -> int:
    """Return the position before which no event will be replayed, whichever of the kept snapshots turns out damaged."""
    kept = positions(files)[-KEPT:]
    sound = [_sound_blob(files, at) for at in kept]
    return kept[0] if len(kept) == KEPT and None not in sound else 0


def save(files: Files, blob: bytes, position: int) -> None:
    """Write a snapshot, then remove those that are too many."""
    name = file_name(position, SNAPSHOT_SUFFIX)
    write_file(files, name, pack_snapshot(position, blob))
    _remove_old(files)


def fold(files: Files, segment_ids: Sequence[SegmentId], targets: Sequence[int], fold: Fold) -> list[tuple[str, int]]:
    """Write the snapshots of these positions, ascending, as temporary files; return the name and position of each.

    Runs in a child process. `segment_ids` are all of the journal's segments; the last one may still be written to,
    behind the last target. A snapshot that exists already is not written again. Neither is one that would be removed at
    once: there may be no earlier snapshot any more, and no events that it could be made from.

    Raises JournalDamaged or OSError, and what `fold` raises.
    """
    written: list[tuple[str, int]] = []
    segments = [Segment(*each) for each in segment_ids]
    begin, blob = 0, None
    kept = sorted({*positions(files), *targets})[-KEPT:]
    for position in targets:
        if position < kept[0]:
            continue
        if not written:
            begin, blob = load_latest(files, position)
            if begin == position:
                continue
        events = replay.events(files, replay.segments_after(files, segments, begin), begin, position)
        begin, blob = position, fold(blob, events)
        name = temporary_name(file_name(position, SNAPSHOT_SUFFIX), files.random_bytes(4))
        write_temporary(files, name, pack_snapshot(position, blob))
        written.append((name, position))
    return written


def keep_folded(files: Files, folded: Sequence[tuple[str, int]]) -> None:
    """Let what was folded be the snapshots of these positions, then remove those that are too many."""
    for made, position in folded:
        put_in_place(files, made, file_name(position, SNAPSHOT_SUFFIX))
    _remove_old(files)


def _remove_old(files: Files) -> None:
    for old in positions(files)[:-KEPT]:
        files.remove(file_name(old, SNAPSHOT_SUFFIX))
