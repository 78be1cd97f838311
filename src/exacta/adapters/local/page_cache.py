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
SEGMENTS_REFUSED = 16
"""Then it is tried again: memory may be at hand by now."""
SEGMENTS_IN_VAIN = 4
"""So many dear ones in a row without growth: what was given back was gone before it was used."""
SEGMENTS_LET_BE = 16
"""Then the cache may grow, whatever it costs."""


class Growth:
    """Judges by what writing takes. Used by one thread at a time.

    Growth is welcome, until a segment was dear. Then it is *refused* for some segments, and welcome again; or *let be*
    for some, if it is refused in vain.
    """

    def __init__(self) -> None:
        self._bytes = 0
        self._seconds = 0.0
        self._refused = 0
        self._let_be = 0
        self._in_vain = 0

    def took(self, size: int, seconds: float) -> None:
        """Take note of the writing of a group: processor time, without the sync."""
        if size >= LARGE_BYTES:
            self._bytes += size
            self._seconds += seconds

    def is_refused(self, can_give_back: bool) -> bool:
        """Judge what was written since the last time; return whether the next segment may take no more memory.

        Where nothing could be given back for it, what was written says nothing: it was neither refused nor in vain.
        """
        size, seconds = self._bytes, self._seconds
        self._bytes, self._seconds = 0, 0.0
        if not can_give_back or size < MEASURED_BYTES:
            return False
        is_dear = seconds > size * DEAR_S_PER_BYTE
        if self._let_be:
            self._let_be -= 1
        elif self._refused:
            self._refused -= 1
            self._in_vain = self._in_vain + 1 if is_dear else 0
            if self._in_vain == SEGMENTS_IN_VAIN:
                self._refused, self._let_be = 0, SEGMENTS_LET_BE
        elif is_dear:
            self._refused, self._in_vain = SEGMENTS_REFUSED, 0
        return self._refused > 0
