"""Snapshots: the engine's state at a position, so that a replay need not begin at the beginning.

Owns the snapshot files: writing them whole, keeping the last two, passing over a damaged one. The blob is the engine's,
and so is the fold that makes the next one from the last one and the events since.
"""

import logging
from collections.abc import Sequence

from exacta.adapters.local import replay
from exacta.adapters.local.files import Files, read_file
from exacta.adapters.local.format import (
    SNAPSHOT_SUFFIX,
    TEMPORARY_SUFFIX,
    SegmentId,
    file_name,
    pack_snapshot,
    positions_of,
    unpack_snapshot,
)
from exacta.adapters.local.rows import Segment
from exacta.adapters.local.writer import put_in_place, write_file, write_temporary
from exacta.ports.journal import Fold

KEPT = 2  # the second, since the first may turn out damaged

logger = logging.getLogger(__name__)


def load_latest(files: Files) -> tuple[int, bytes | None]:
    """Return position and blob of the latest sound snapshot; position 0 and None if there is none."""
    for position in reversed(positions_of(files.names(), SNAPSHOT_SUFFIX)):
        name = file_name(position, SNAPSHOT_SUFFIX)
        blob = unpack_snapshot(read_file(files, name), position)
        if blob is not None:
            return position, blob
        # Case 9 of the table in docs/reference/journal-format.md.
        logger.warning("%s is damaged; the replay begins at the snapshot before it", files.directory / name)
    return 0, None


def replays_begin_at(files: Files) -> tuple[int, int]:
    """Return the position before which no event will be replayed, whichever of the kept snapshots turns out damaged.

    And that of the newest snapshot.
    """
    positions = positions_of(files.names(), SNAPSHOT_SUFFIX)[-KEPT:]
    names = [file_name(position, SNAPSHOT_SUFFIX) for position in positions]
    sound = [unpack_snapshot(read_file(files, name), at) for name, at in zip(names, positions, strict=True)]
    newest = positions[-1] if positions else 0
    return (positions[0] if len(positions) == KEPT and None not in sound else 0), newest


def save(files: Files, blob: bytes, position: int) -> None:
    """Write a snapshot, then remove those that are too many."""
    name = file_name(position, SNAPSHOT_SUFFIX)
    write_file(files, name, name + TEMPORARY_SUFFIX, pack_snapshot(position, blob))
    _remove_old(files)


def fold(files: Files, segment_ids: Sequence[SegmentId], position: int, fold: Fold) -> str | None:
    """Write the snapshot of `position` as a temporary file, and return its name; None: there is one already.

    Runs aside; `segment_ids` are all of the journal's, of which the last may still be written to, behind `position`.
    Raises JournalDamaged or OSError, and what `fold` raises.
    """
    begin, blob = load_latest(files)
    if begin >= position:
        return None
    segments = replay.segments_after(files, [Segment(*each) for each in segment_ids], begin)
    folded = fold(blob, replay.events(files, segments, begin, position))
    name = f"{file_name(position, SNAPSHOT_SUFFIX)}.{files.random_bytes(4).hex()}{TEMPORARY_SUFFIX}"
    write_temporary(files, name, pack_snapshot(position, folded))
    return name


def keep_folded(files: Files, temporary_name: str, position: int) -> None:
    """Let what was folded be the snapshot of `position`, then remove those that are too many."""
    put_in_place(files, temporary_name, file_name(position, SNAPSHOT_SUFFIX))
    _remove_old(files)


def _remove_old(files: Files) -> None:
    for old in positions_of(files.names(), SNAPSHOT_SUFFIX)[:-KEPT]:
        files.remove(file_name(old, SNAPSHOT_SUFFIX))
