"""The cases by name. A new case is a function that yields figures, and an entry here.

A `BrokerCase` runs on a broker that is there; a `LaunchCase` starts brokers of its own.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from benchmarks.brokers import Launcher
from benchmarks.cases import bulk, end_to_end, produce, starting, transactions, transform
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
    LaunchCase(
        name="embedded-start",
        title="start of an embedded broker to the first acknowledged message, with imports done",
        run=starting.embedded_start,
    ),
    LaunchCase(name="idle-memory", title="resident memory after a start", run=starting.idle_memory),
    LaunchCase(
        name="idle-memory-metrics",
        title="resident memory after a start, with metrics on and scraped",
        run=starting.idle_memory_with_metrics,
    ),
    BrokerCase(name="produce-1", title="one synchronous producer, one 100 B message at a time", run=produce.run),
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
    *(
        BrokerCase(
            name=f"ctp-{records}",
            title=f"consume-transform-produce, {records} records of 100 B a transaction, from one partition to one",
            run=partial(transform.run, records=records, partitions=1),
        )
        for records in (1, 10, 100)
    ),
    BrokerCase(
        name="ctp-100-to-8",
        title="consume-transform-produce, 100 records of 100 B a transaction, from one partition to 8",
        run=partial(transform.run, records=100, partitions=8),
    ),
    *(
        BrokerCase(
            name=f"bulk-{label}{kind}",
            title=f"idempotent produce, then read_committed consume, {size:,} B messages{each}",
            run=partial(bulk.run, message_bytes=size, per_transaction=count),
        )
        for kind, each, count in (("", "", None), ("-txn", ", 10,000 in each transaction", 10_000))
        for label, size in (("100B", 100), ("1KB", 1_000))
    ),
    BrokerCase(
        name="end-to-end",
        title="1,000 messages a second, 10 in each transaction, from due time to a read_committed consumer",
        run=partial(end_to_end.run, rate=1_000),
    ),
    BrokerCase(
        name="connections-2000",
        title="2,000 connections, each with one Produce of 100 B at a time",
        run=partial(produce.run_connections, connections=2_000, processes=2, partitions=8),
    ),
)
CASES: dict[str, Case] = {case.name: case for case in _ALL}
