"""Blocks of objects in memory, as far as they were read lately.

A store takes milliseconds for a request, however little is asked for. So an object is read by blocks, and those read
last stay in memory. A block is fetched once for all that want it at a time. A reader that goes on from block to block
finds the next one fetched.

Nothing is checked here: groups, batches and indexes have checksums of their own.
"""

import errno
import threading
from collections import OrderedDict
from contextlib import suppress
from typing import TypeAlias

from exacta.adapters.local.worker import Jobs
from exacta.ports.shared import Missing, ObjectStore, StoreFailed

BLOCK_BYTES = 4 << 20
KEPT_BYTES = 256 << 20
"""The most bytes of blocks that stay in memory; those that are being fetched come on top, one for each thread."""

_Block: TypeAlias = tuple[str, int]  # key, number


class Gone(FileNotFoundError):
    """A place that was looked up no longer has what was to be read: a newer catalog says where it is."""


def store_error(error: StoreFailed) -> OSError:
    """Return what callers of `Files` are told of a store that failed."""
    if isinstance(error, Missing):
        return Gone(errno.ENOENT, str(error))
    return OSError(errno.EIO, str(error))


class Blocks:
    """Read objects by blocks; any thread may call."""

    def __init__(self, store: ObjectStore, kept_bytes: int = KEPT_BYTES, ahead: Jobs | None = None) -> None:
        """`ahead` fetches blocks before they are asked for; None: nothing does."""
        self._store = store
        self._kept_bytes = kept_bytes
        self._ahead = ahead
        self._lock = threading.Lock()
        self._blocks: OrderedDict[_Block, bytes] = OrderedDict()  # in order of last use
        self._bytes = 0
        self._fetching: dict[_Block, threading.Event] = {}
        self._last: OrderedDict[str, int] = OrderedDict()  # the block that was read last, of as many objects as blocks

    def read(self, key: str, object_bytes: int, size: int, offset: int) -> bytes:
        """Return `size` bytes of an object that has `object_bytes`, fewer at its end; raise OSError, Gone."""
        end = min(offset + size, object_bytes)
        if end <= offset:
            return b""
        numbers = range(offset // BLOCK_BYTES, -(-end // BLOCK_BYTES))
        parts = []
        for number in numbers:
            begin = number * BLOCK_BYTES
            block = self._block(key, number, object_bytes)
            parts.append(memoryview(block)[max(offset - begin, 0) : end - begin])
        self._look_ahead(key, numbers, object_bytes)
        return b"".join(parts)

    def read_cached(self, key: str, object_bytes: int, size: int, offset: int) -> bytes | None:
        """Return as `read` does if all of it is in memory; else None."""
        end = min(offset + size, object_bytes)
        parts = []
        with self._lock:
            for number in range(offset // BLOCK_BYTES, -(-end // BLOCK_BYTES)):
                block = self._blocks.get((key, number))
                if block is None:
                    return None
                self._blocks.move_to_end((key, number))
                begin = number * BLOCK_BYTES
                parts.append(memoryview(block)[max(offset - begin, 0) : end - begin])
        return b"".join(parts)

    def forget(self, key: str) -> None:
        """Let go of the blocks of an object that nobody reads any more."""
        with self._lock:
            for each in [each for each in self._blocks if each[0] == key]:
                self._bytes -= len(self._blocks.pop(each))
            self._last.pop(key, None)

    def close(self) -> None:
        """Finish what is fetched ahead, and fetch nothing more."""
        if self._ahead is not None:
            ahead, self._ahead = self._ahead, None
            ahead.close()

    def _block(self, key: str, number: int, object_bytes: int) -> bytes:
        name = key, number
        while True:
            with self._lock:
                block = self._blocks.get(name)
                if block is not None:
                    self._blocks.move_to_end(name)
                    return block
                fetched = self._fetching.get(name)
                if fetched is None:
                    ours = self._fetching[name] = threading.Event()
                    break
            fetched.wait()  # where its fetcher fails, we try
        try:
            block = self._fetch(key, number, object_bytes)
            with self._lock:
                self._keep(name, block)
            return block
        finally:
            with self._lock:
                del self._fetching[name]
            ours.set()

    def _fetch(self, key: str, number: int, object_bytes: int) -> bytes:
        begin = number * BLOCK_BYTES
        size = min(BLOCK_BYTES, object_bytes - begin)
        try:
            block = self._store.get(key, begin, size)
        except StoreFailed as error:
            raise store_error(error) from error
        if len(block) != size:
            raise OSError(errno.EIO, f"object {key} ends before byte {begin + size}")
        return block

    def _keep(self, name: _Block, block: bytes) -> None:
        self._blocks[name] = block
        self._bytes += len(block)
        while self._bytes > self._kept_bytes:
            _, dropped = self._blocks.popitem(last=False)
            self._bytes -= len(dropped)

    def _look_ahead(self, key: str, numbers: range, object_bytes: int) -> None:
        """Fetch the next block if this reader seems to go on."""
        ahead = self._ahead
        if ahead is None:
            return
        following = numbers[-1] + 1
        with self._lock:
            before = self._last.get(key)
            self._last[key] = numbers[-1]
            self._last.move_to_end(key)
            if len(self._last) > max(1, self._kept_bytes // BLOCK_BYTES):
                self._last.popitem(last=False)
            name = key, following
            if before not in (numbers[-1], numbers[0] - 1) or following * BLOCK_BYTES >= object_bytes:
                return
            if name in self._blocks or name in self._fetching:
                return
        ahead.submit(lambda: self._fetch_ahead(key, following, object_bytes))

    def _fetch_ahead(self, key: str, number: int, object_bytes: int) -> None:
        with suppress(OSError):  # who reads it meets the error again, and tells of it
            self._block(key, number, object_bytes)
