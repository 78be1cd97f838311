"""Every object store, for the tests of its contract.

A bench yields itself from a context manager, and is named in `BENCHES`.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from typing import Protocol

from exacta.adapters.memory import MemoryObjects, StoreFault
from exacta.ports.shared import ObjectStore


class ObjectBench(Protocol):
    """One bucket under test, which any number of brokers open."""

    def open(self) -> ObjectStore:
        """Return the store as one more broker opens it."""

    def fail_put(self, *, carried_out: bool) -> None:
        """Let the next put fail: before the store has done anything, or after it was carried out."""


class MemoryBench:
    """The store in memory, which is its own bucket."""

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


class RealBench:
    """A store that this process did not write."""

    def __init__(self, new_store: Callable[[], ObjectStore], fail_put: Callable[[bool], None]) -> None:
        self._new_store = new_store
        self._fail_put = fail_put
        self._ends = ExitStack()

    def open(self) -> ObjectStore:
        store = self._new_store()
        self._ends.callback(store.close)
        return store

    def fail_put(self, *, carried_out: bool) -> None:
        self._fail_put(carried_out)

    def close(self) -> None:
        """Close the stores."""
        self._ends.close()


@contextmanager
def postgres() -> Iterator[ObjectBench]:
    """The table in PostgreSQL, which a ledger has made."""
    from tests.adapters import real_postgres  # the extra, where it is needed

    with real_postgres.a_schema() as schema:
        fail_put = partial(real_postgres.fail_put, schema)
        with closing(RealBench(partial(real_postgres.objects, schema), fail_put)) as bench:
            yield bench


@contextmanager
def moto() -> Iterator[ObjectBench]:
    """A server that speaks S3, in a thread of this process."""
    from tests.adapters import moto_server

    with closing(RealBench(partial(moto_server.objects, moto_server.new_bucket()), moto_server.fail_put)) as bench:
        yield bench


BENCHES: dict[str, Callable[[], AbstractContextManager[ObjectBench]]] = {
    "memory": memory,
    "postgres": postgres,
    "moto": moto,
}
