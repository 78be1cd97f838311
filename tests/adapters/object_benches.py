"""Every object store, for the tests of its contract.

A bench yields itself from a context manager, and is named in `BENCHES`.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from exacta.adapters.memory import MemoryObjects, StoreFault
from exacta.ports.shared import ObjectStore


class ObjectBench(Protocol):
    """One bucket under test, which any number of brokers open."""

    @property
    def can_fail(self) -> bool:
        """True if `fail_put` works."""

    def open(self) -> ObjectStore:
        """Return the store as one more broker opens it."""

    def fail_put(self, *, carried_out: bool) -> None:
        """Let the next put fail: before the store has done anything, or after it was carried out."""


class MemoryBench:
    """The store in memory, which is its own bucket."""

    can_fail = True

    def __init__(self) -> None:
        self.store = MemoryObjects()
        self.faults: list[StoreFault] = []
        self.store.fault = lambda call, key: self.faults.pop() if call == "put" and self.faults else None

    def open(self) -> ObjectStore:
        return self.store

    def fail_put(self, *, carried_out: bool) -> None:
        self.faults.append(StoreFault.UNANSWERED if carried_out else StoreFault.REFUSED)


@contextmanager
def memory() -> Iterator[ObjectBench]:
    yield MemoryBench()


BENCHES: dict[str, Callable[[], AbstractContextManager[ObjectBench]]] = {"memory": memory}
