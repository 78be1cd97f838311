"""Groups of the tail: the bytes of a segment file, checked when they are read."""

from collections.abc import Sequence
from typing import NamedTuple

from crc32c import crc32c

from exacta.adapters.local.format import GROUP_HEADER_BYTES, MARK_BYTES, TableEntry, unpack_group_header, unpack_table
from exacta.ports.journal import Buffer, JournalDamaged
from exacta.ports.shared import TailGroup


class CheckedGroup(NamedTuple):
    """A group whose bytes are what a leader has appended.

    `durable` is a position: its leader had been told before that all up to there is durable. `checksum` covers the
    group, and `previous_checksum` names the one before it, so that a group vouches for all that it follows.
    """

    position: int
    end: int
    epoch: int
    durable: int
    catalog: int
    mark: bytes
    previous_checksum: int
    checksum: int
    payload_position: int
    entries: Sequence[TableEntry]
    body: Buffer


def check_group(group: TailGroup) -> CheckedGroup:
    """Read a group of the tail; raise JournalDamaged if it is not what a leader has appended."""
    body = memoryview(group.body)
    mark = bytes(body[:MARK_BYTES])
    header = unpack_group_header(body, mark)
    if header is None or (header.position, header.size) != (group.position, len(body)):
        raise _damaged(group, "its header is not sound")
    if group.end != group.position + header.size or crc32c(body[GROUP_HEADER_BYTES:]) != header.body_checksum:
        raise _damaged(group, "its checksum is wrong")
    payload_at = GROUP_HEADER_BYTES + header.table_size
    try:
        entries = list(unpack_table(body[GROUP_HEADER_BYTES:payload_at], header.entry_count))
    except ValueError as error:
        raise _damaged(group, str(error)) from error
    return CheckedGroup(
        position=group.position,
        end=group.end,
        epoch=group.epoch,
        durable=header.durable_end,
        catalog=group.catalog,
        mark=mark,
        previous_checksum=header.previous_checksum,
        checksum=header.checksum,
        payload_position=group.position + payload_at,
        entries=entries,
        body=group.body,
    )


def _damaged(group: TailGroup, reason: str) -> JournalDamaged:
    return JournalDamaged(f"the group at position {group.position} of the shared log is damaged: {reason}")
