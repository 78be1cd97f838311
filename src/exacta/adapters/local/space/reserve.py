"""The reserve of the disk: bytes that nobody else can take, out of which a start opens and small things go on.

This module owns the file `reserve`, how large it is, when it shrinks, and when it is filled again. What is refused
meanwhile is the core's to say (`exacta.core.log.full_disk`, decision 0051).

Theory of operation. The file takes up room and holds nothing. With `whole` for its full size, and *spare* for what is
free on the disk together with what the file holds:

    spare is                  the file              batches                            small events
    at least 3/2 of `whole`   is filled             what is above 5/4                  are taken
    between                   stays as it is        what is above 5/4, for the time *  are taken
    below 5/4 of `whole`      is cut to a quarter   none                               are taken
    below 1/4 of `whole`      is cut to a quarter   none                               only what frees or ends something

* Unless one has found no room since spare was above. What is left of the file is for commits, snapshots and cleaning.

It is cut to a quarter, too, when a snapshot or a cleaning finds too little room: that is what frees the disk. Of the
last quarter a sixteenth of `whole` is given each time when less than 1/32 is free, also at a start.

It is looked at after each group, and at intervals. A write that meets a full disk all the same takes what it needs of
the file, and is made once more: nothing of it was synced, so the same bytes go to the same place. A failed sync is
never tried again.
"""

import logging
import threading
from contextlib import suppress

from exacta.adapters.local.files import Files
from exacta.adapters.local.writer import NO_ROOM
from exacta.ports.journal import Room

NAME = "reserve"
WHOLE_BYTES = 64 << 20
"""A day of what a hundred consumers commit every five seconds, or the snapshots and cleanings that free the disk."""
SHARE = 8
"""The reserve is at most such a part of the disk."""
PLENTY_BYTES = 1 << 30
"""The spare bytes that nobody counts any more: clients may not have as much under way (queued.max.request.bytes)."""

SMALL_BYTES = 256 << 10

logger = logging.getLogger(__name__)


class Reserve:
    """The reserve of one opened directory; any thread may call. With `most_bytes` 0 there is none, and all is free."""

    def __init__(self, files: Files, most_bytes: int) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._handle: int | None = None
        self._held = 0
        self._whole = min(most_bytes, files.total_bytes() // SHARE) if most_bytes else 0

    @property
    def is_kept(self) -> bool:
        """Return whether there is to be a reserve."""
        return self._whole > 0

    @property
    def held_bytes(self) -> int:
        """Return how many bytes the reserve holds."""
        return self._held

    def begin(self) -> None:
        """Find the file, and let it give what a start needs, or fill it; raises OSError."""
        if not self._whole:
            return
        if NAME in self._files.names():
            self._handle = self._files.open(NAME, writable=True)
            self._held = self._files.size(self._handle)
        self.measure(None)
        self.fill()

    def measure(self, before: Room | None) -> Room | None:
        """Cut the file where that is due, and return what may be written; None: more than anybody counts.

        Where the disk does not say how much is free, it is as `before`.
        """
        if not self._whole:
            return None
        with self._lock:
            whole = self._whole
            try:
                free = self._files.available_bytes()
                spare = free + self._held
                if spare < whole * 5 // 4 and self._held > whole // 4:
                    self._cut(whole // 4)
                elif self._held and free < whole // 32:
                    self._cut(max(0, self._held - whole // 16))
            except OSError as error:
                logger.warning("the room on the disk of %s is not known: %s", self._files.directory, error)
                return before
        if spare >= PLENTY_BYTES:
            return None
        return Room(
            append_bytes=max(0, spare - whole * 5 // 4),
            is_used_up=spare < whole // 4,
            is_low=spare < whole * 3 // 2,
        )

    def give(self, size: int) -> bool:
        """Make this many bytes free for a write that has met a full disk; return whether there is any hope."""
        with self._lock:
            if not self._held:
                return False
            with suppress(OSError):
                self._cut(max(0, self._held - max(size, self._whole // 16)))
                return True
            return False

    def lend(self, error: OSError) -> None:
        """Make room for snapshots and cleanings, one of which has met a full disk; it is filled again later."""
        with self._lock, suppress(OSError):
            if error.errno in NO_ROOM and self._held > self._whole // 4:
                self._cut(self._whole // 4)

    def ensure(self) -> None:
        """Make sure of the little that a new file takes, since its making is not tried twice."""
        small = min(SMALL_BYTES, self._whole // 16)
        with suppress(OSError):
            if self._held and self._files.available_bytes() < small:
                self.give(small)

    def close(self) -> None:
        """Close the file, which stays."""
        if self._handle is not None:
            self._files.close(self._handle)
            self._handle = None

    def fill(self) -> None:
        """Let the file be whole again, where there is room for that."""
        if self._held >= self._whole:
            return
        with self._lock:
            try:
                if self._files.available_bytes() + self._held < self._whole * 3 // 2:
                    return
                if self._handle is None:
                    self._handle = self._files.create(NAME)
                self._files.allocate(self._handle, self._whole)
                self._held = self._whole
            except OSError as error:  # tried again when it is looked at next; what it got so far is given back
                logger.warning("the reserve of the disk in %s could not be filled: %s", self._files.directory, error)
                if self._handle is not None:
                    with suppress(OSError):
                        self._cut(self._held)

    def _cut(self, size: int) -> None:
        assert self._handle is not None
        self._files.truncate(self._handle, size)
        self._held = size
