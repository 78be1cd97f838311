"""The age of records: where those of a partition are young enough to be kept."""

from exacta.ports.journal import JournalReader


def first_young(reader: JournalReader, stream: int, since_ms: int, offset: int, end_offset: int) -> int:
    """Return the offset, from `offset` on, of the first batch that is of `since_ms` or later; the end: none is.

    Batches go from the front: an older one behind a young one is kept with it. Batches without a time are never old.
    """
    young = reader.find_by_time(stream, since_ms, offset, end_offset)
    if young is not None:
        return max(offset, young.first_offset)
    latest = reader.find_latest(stream, offset, end_offset)
    return end_offset if latest is not None and latest.max_timestamp_ms >= 0 else offset
