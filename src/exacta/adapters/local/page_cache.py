"""Whether the log's share of the page cache should stay as large as it is (decision 0024).

What is written stays in the page cache, and so grows it. Mostly that costs nothing: the machine has memory to spare.
Where it has none at hand, each page must be got first, from other uses or, in a virtual machine that gives back what is
free, from the host; to write a megabyte then takes ten times as long. Bytes that were written long ago are the cheapest
ones to have the pages of.
"""

KEPT_BYTES = 512 << 20
"""So much of what was written or read last stays in any case."""
LARGE_BYTES = 256 << 10
"""Smaller groups say nothing: what each costs by itself is more than its pages."""
MEASURED_BYTES = 32 << 20
"""So much of a segment must have come in large groups for a judgement of it."""
DEAR_S_PER_BYTE = 1.5e-9
"""A copy into pages that are at hand takes 0.2 to 0.5 ms a megabyte, one into pages to be got first 2.5 to 3.5."""
SEGMENTS_WITHOUT_GROWTH = 16
"""Then it is tried again: memory may be at hand by now."""


class Growth:
    """Judges by what writing takes. Used by one thread at a time."""

    def __init__(self) -> None:
        self._bytes = 0
        self._seconds = 0.0
        self._segments_left = 0

    def took(self, size: int, seconds: float) -> None:
        """Take note of the writing of a group, without its sync."""
        if size >= LARGE_BYTES:
            self._bytes += size
            self._seconds += seconds

    def is_refused(self) -> bool:
        """Judge the segment that ends now; return whether the next one should take no more memory than there is."""
        if self._bytes >= MEASURED_BYTES and self._seconds > self._bytes * DEAR_S_PER_BYTE:
            self._segments_left = SEGMENTS_WITHOUT_GROWTH
        else:
            self._segments_left = max(0, self._segments_left - 1)
        self._bytes, self._seconds = 0, 0.0
        return self._segments_left > 0
