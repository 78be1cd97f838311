"""The room on the disk, as far as the core goes by it."""

from msgspec import Struct


class DiskRoom(Struct, frozen=True, kw_only=True):
    """The room that is left on a disk that is not far from full."""

    append_bytes: int
    """The bytes of batches that may still be appended."""
    is_used_up: bool = False
    """True if even the reserve is used up: only what frees space, or ends something, is written."""

    def less(self, size: int) -> "DiskRoom":
        """Return the room after a batch of this size."""
        return DiskRoom(append_bytes=self.append_bytes - size, is_used_up=self.is_used_up)
