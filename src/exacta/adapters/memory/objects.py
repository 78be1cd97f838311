"""An object store in memory: the same contract as a real one, held to it by the same test suite.

The store is the object itself: all that use it see the same objects, and it outlives them. A test or the simulation
sets its faults: a call that fails before or after it was carried out, an object that is altered or gone. Pickling it
within one process gives the store itself, so that what is sent to a job's process can be tried without one.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from itertools import count
from weakref import WeakValueDictionary

from exacta.ports.journal import Buffer
from exacta.ports.shared.objects import Missing, StoreFailed


class StoreFault(Enum):
    """A way in which a call fails."""

    REFUSED = "the store is not available (503)"
    """It was not carried out."""
    UNANSWERED = "the store has not answered"
    """It was carried out, and the caller is not told."""


class MemoryObjects:
    """Implement `exacta.ports.shared.ObjectStore`."""

    def __init__(self, of: "MemoryObjects | None" = None) -> None:
        """Begin with no object, or reach the objects of another store, with faults of its own."""
        self.objects: dict[str, bytes] = {} if of is None else of.objects
        self.fault: Callable[[str, str], StoreFault | None] = lambda call, key: None
        """The fault of a call (`put`, `get`, `delete`) for a key; None: it succeeds."""
        self._number = next(_NUMBERS)
        _STORES[self._number] = self

    def __reduce__(self) -> tuple[Callable[[int], "MemoryObjects"], tuple[int]]:
        return _of_number, (self._number,)

    def put(self, key: str, data: Sequence[Buffer]) -> None:
        """See `ObjectStore.put`."""
        stored = b"".join(data)
        assert self.objects.get(key, stored) == stored, f"{key} is put with other bytes"
        fault = self.fault("put", key)
        if fault is not StoreFault.REFUSED:
            self.objects[key] = stored
        _raise(fault)

    def get(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        """See `ObjectStore.get`."""
        _raise(self.fault("get", key))
        if key not in self.objects:
            raise Missing(f"there is no object {key}")
        end = None if size is None else start + size
        return self.objects[key][start:end]

    def delete(self, keys: Iterable[str]) -> None:
        """See `ObjectStore.delete`."""
        for key in keys:
            fault = self.fault("delete", key)
            if fault is not StoreFault.REFUSED:
                self.objects.pop(key, None)
            _raise(fault)

    def close(self) -> None:
        """See `ObjectStore.close`; the objects stay."""

    # --- faults -------------------------------------------------------------------------------------------------------

    def alter(self, key: str, at: int) -> None:
        """Alter the byte at this place of an object."""
        data = bytearray(self.objects[key])
        data[at] ^= 0xFF
        self.objects[key] = bytes(data)

    def lose(self, key: str) -> None:
        """Lose an object."""
        del self.objects[key]


def _raise(fault: StoreFault | None) -> None:
    if fault is not None:
        raise StoreFailed(fault.value)


_NUMBERS = count()
_STORES: WeakValueDictionary[int, MemoryObjects] = WeakValueDictionary()


def _of_number(number: int) -> MemoryObjects:
    return _STORES[number]
