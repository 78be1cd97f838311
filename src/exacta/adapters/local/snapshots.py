"""Snapshots: the engine's state at a position, so that a replay need not begin at the beginning.

Owns the snapshot files: writing them whole, keeping the last two, passing over a damaged one. The blob is the engine's.
"""

import logging

from exacta.adapters.local.files import Files, read_file
from exacta.adapters.local.format import (
    SNAPSHOT_SUFFIX,
    TEMPORARY_SUFFIX,
    file_name,
    pack_snapshot,
    positions_of,
    unpack_snapshot,
)
from exacta.adapters.local.writer import write_file

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
    for old in positions_of(files.names(), SNAPSHOT_SUFFIX)[:-KEPT]:
        files.remove(file_name(old, SNAPSHOT_SUFFIX))
