"""Planted bugs of the journal and its files."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, cast

from exacta.adapters.local import writer
from exacta.adapters.local.files import Files, write_fully
from exacta.adapters.local.format import MARK_BYTES, TEMPORARY_SUFFIX, SegmentHeader, pack_segment_header
from exacta.adapters.local.opening import recovery, segment_scan, unsynced_end
from exacta.adapters.local.opening.segment_scan import SegmentScan
from exacta.adapters.local.space import cleaning
from exacta.ports.journal import Buffer
from simulation.canaries import Replacements, canary


@canary(
    "a failed fsync is tried again, and the second try believed (PostgreSQL 2018; Rebello et al., ATC 2020)",
    shows=r"8: (.* it was sound when|recovered up to .* was durable)",
)
def retry_after_failed_sync() -> Replacements:
    def sync(self: writer.Writer, position: int) -> None:
        with suppress(OSError):
            self._files.sync_data(self.handle)
        self._files.sync_data(self.handle)
        self.durable_end = position

    return [(writer.Writer, "sync", sync)]


@canary(
    "recovery believes what the page cache shows of a tail whose sync failed, and does not write it once more",
    shows=r"8: (.* it was sound when|recovered up to .* was durable)",
)
def tail_not_written_again() -> Replacements:
    def cut_only(files: Files, handle: int, scan: SegmentScan) -> None:
        files.truncate(handle, scan.offset)
        files.sync(handle)

    return [(recovery, "_make_end_durable", cut_only)]


@canary(
    "a torn write at the journal's end is taken for whole (etcd 16596)",
    shows=r"ValidationError|CorruptBatch: .* fails its checksum|cannot be read .* fails its checksum",
)
def torn_tail_accepted() -> Replacements:
    check = segment_scan.SegmentScan._check

    def without_checksum(self: segment_scan.SegmentScan, header: Any) -> str | None:
        reason = check(self, header)
        return None if reason == "the group's checksum is wrong" else reason

    return [(segment_scan.SegmentScan, "_check", without_checksum)]


@canary(
    "a new file's name is not made durable (RocksDB 10185)", shows=r"8: recovered up to .* was durable|8: .* is missing"
)
def directory_not_synced() -> Replacements:
    def write_segment_header(files: Files, handle: int, base: int, previous_checksum: int) -> SegmentHeader:
        header = SegmentHeader(base, files.random_bytes(MARK_BYTES), previous_checksum)
        write_fully(files, handle, [pack_segment_header(header)], 0)
        files.sync(handle)
        return header

    return [
        (writer, "write_segment_header", write_segment_header),
        (recovery, "write_segment_header", write_segment_header),
        (unsynced_end, "write_file", _write_file_without_names),
        (recovery, "write_file", _write_file_without_names),
    ]


def _write_file_without_names(files: Files, name: str, buffers: Sequence[Buffer]) -> None:
    temporary_name = name + TEMPORARY_SUFFIX
    handle = files.create(temporary_name)
    try:
        write_fully(files, handle, buffers, 0)
        files.sync(handle)
    finally:
        files.close(handle)
    files.rename(temporary_name, name)


@canary(
    "a group is acknowledged when it is written, and not when it is synced",
    shows=r"8: (recovered up to .* was durable|.* the group's checksum is wrong)",
)
def append_without_sync() -> Replacements:
    def sync(self: writer.Writer, position: int) -> None:
        self.durable_end = position

    return [(writer.Writer, "sync", sync)]


@canary(
    "what was written ahead of its sync is not known to be lost (decision 0016)",
    shows=r"lost write: .* which is committed|apart: .* the same record|a transaction commits that has lost",
)
def loss_not_noticed() -> Replacements:
    never: Callable[..., bool] = lambda data, end, boot_id: False  # noqa: E731
    return [(unsynced_end, "_may_have_lost", never)]


class Unsynced:
    """Files of which nothing is synced."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def __getattr__(self, name: str) -> object:
        return getattr(self._files, name)

    def sync(self, handle: int) -> None:
        """Do nothing."""

    def sync_data(self, handle: int) -> None:
        """Do nothing."""


@canary(
    "a cleaned segment takes the place of others before it is durable",
    shows=r"8: .*\.\d+\.log, byte \d+: the segment's header is unreadable",
)
def cleaned_segment_not_synced() -> Replacements:
    write = cleaning.write

    def write_unsynced(files: Files, *arguments: Any) -> object:
        return write(cast("Files", Unsynced(files)), *arguments)

    return [(cleaning, "write", write_unsynced)]
