"""Growth of the log's share of the page cache, and the refusal of it where it is expensive (decision 0024).

This is used only if the broker option `log.page.cache.trim.enable` is set. The numbers below were measured on one
hypervisor.

What is written stays in the page cache, and so grows it. That usually costs nothing, because the machine has memory to
spare. If no memory is free, each page must be obtained first: from other uses, or from the host in a virtual machine
that gives free memory back. Then it takes ten times as long to write a megabyte. The cheapest pages to obtain are those
of bytes that were written long ago.
"""

KEPT_BYTES = 512 << 20
"""So much of what was written or read last stays in the cache in any case."""
LARGE_BYTES = 256 << 10
"""Smaller groups are not measured: each costs more by itself than its pages do."""
MEASURED_BYTES = 32 << 20
"""A segment is judged only if so much of it came in large groups."""
DEAR_S_PER_BYTE = 1.5e-9
"""A copy into free pages takes 0.2 to 0.5 ms a megabyte, one into pages that must be obtained first 2.5 to 3.5."""
SEGMENTS_REFUSED = 16
"""Growth is refused for this many segments, and then tried again: memory may be free by now."""
SEGMENTS_IN_VAIN = 4
"""Growth is refused in vain if this many segments in a row are expensive: what was given back was gone again."""
SEGMENTS_LET_BE = 16
"""The cache may then grow for this many segments, whatever that costs."""


class Growth:
    """Judge growth by the time that writing takes; used by one thread at a time.

    Growth is welcome until a segment is expensive. Then it is *refused* for some segments, and welcome again. If it is
    refused in vain, it is *let be* for some segments.
    """

    def __init__(self) -> None:
        self._bytes = 0
        self._seconds = 0.0
        self._refused = 0
        self._let_be = 0
        self._in_vain = 0

    def took(self, size: int, seconds: float) -> None:
        """Note the size of a group and the processor time of its writing, without the sync."""
        if size >= LARGE_BYTES:
            self._bytes += size
            self._seconds += seconds

    def is_refused(self, can_give_back: bool) -> bool:
        """Judge what was written since the last call; return whether the next segment may take no more memory.

        If nothing can be given back for that segment, what was written is not judged.
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
