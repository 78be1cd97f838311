"""The cases by name. A new case is a function that yields figures, and an entry here.

A `BrokerCase` runs on a broker that is there; a `LaunchCase` starts brokers of its own.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from benchmarks.brokers import Launcher
from benchmarks.cases import bulk, starting, transactions, transform
from benchmarks.figures import Figure
from benchmarks.session import Session


@dataclass(frozen=True, kw_only=True)
class BrokerCase:
    """A case that works on a running broker."""

    name: str
    title: str
    run: Callable[[Session, str], Iterable[Figure]]


@dataclass(frozen=True, kw_only=True)
class LaunchCase:
    """A case that starts brokers of its own."""

    name: str
    title: str
    run: Callable[[Launcher, str], Iterable[Figure]]


Case = BrokerCase | LaunchCase

_ALL: tuple[Case, ...] = (
    LaunchCase(name="start", title="start of the process to the first acknowledged message", run=starting.start),
    LaunchCase(name="idle-memory", title="resident memory after a start", run=starting.idle_memory),
    BrokerCase(
        name="txn-1",
        title="one synchronous transactional producer, one 100 B message a transaction",
        run=partial(transactions.run, producers=1, processes=1, partitions=1),
    ),
    BrokerCase(
        name="txn-50",
        title="50 synchronous transactional producers, one 100 B message a transaction",
        run=partial(transactions.run, producers=50, processes=2, partitions=8),
    ),
    *(
        BrokerCase(
            name=f"txn-1-to-{width}",
            title=f"one synchronous transactional producer, 100 B to each of {width} partitions a transaction",
            run=partial(transactions.run, producers=1, processes=1, partitions=width, width=width),
        )
        for width in (10, 100, 1_000)
    ),
    BrokerCase(
        name="ctp-100",
        title="consume-transform-produce, 100 records of 100 B a transaction, from one partition to one",
        run=partial(transform.run, records=100, partitions=1),
    ),
    BrokerCase(
        name="ctp-100-to-8",
        title="consume-transform-produce, 100 records of 100 B a transaction, from one partition to 8",
        run=partial(transform.run, records=100, partitions=8),
    ),
    BrokerCase(
        name="bulk-100B",
        title="idempotent produce, then read_committed consume, 100 B messages",
        run=partial(bulk.run, message_bytes=100),
    ),
    BrokerCase(
        name="bulk-1KB",
        title="idempotent produce, then read_committed consume, 1,000 B messages",
        run=partial(bulk.run, message_bytes=1_000),
    ),
)
CASES: dict[str, Case] = {case.name: case for case in _ALL}
