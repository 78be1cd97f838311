"""The object store: bytes under keys that are written once."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from exacta.ports.journal import Buffer


class StoreFailed(Exception):
    """The store did not do what it was asked for, or nobody knows whether it did; the message is for a log line."""


class Missing(StoreFailed):
    """The store has no object of this key."""


class ObjectStore(Protocol):
    """Keep objects. Every method blocks, may be called from any thread, and raises StoreFailed.

    An implementation can be pickled: long jobs use it in a process of their own. What `put` has returned for is durable
    and whole, for every caller from then on. A put that failed may have stored all of the object, or nothing of it,
    never a part. Nothing rests on lists, on overwriting, or on conditional writes.
    """

    def put(self, key: str, data: Sequence[Buffer]) -> None:
        """Store an object; the buffers follow one another. A key is put once, or again with the same bytes."""

    def get(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        """Return `size` bytes of the object from `start` on, fewer at its end; None: all of them. Raises Missing."""

    def delete(self, keys: Iterable[str]) -> None:
        """Remove these objects, as far as they are there."""

    def close(self) -> None:
        """Release everything; no call is allowed then."""
