"""The cases beside Apache Pulsar, by name. Each is a load of `PulsarLoad.java`."""

import statistics
import time
from collections.abc import Iterator
from functools import partial

from benchmarks.brokers import Launcher
from benchmarks.cases import BrokerCase, Case, LaunchCase
from benchmarks.cases.starting import settled_bytes
from benchmarks.figures import Figure
from benchmarks.pulsar.client import JavaClient
from benchmarks.session import Scale, Session, phase_figures

NO_SCALE = Scale()

TRANSACTIONS = {
    "pulsar-txn-1": (
        "transactions-1",
        "one synchronous client: new transaction, one 100 B message that is not batched, commit",
    ),
    "pulsar-txn-50": ("transactions-50", "50 of them, each with a thread and a topic of its own, on one connection"),
    "pulsar-ctp-100": (
        "transform",
        "consume-transform-produce: 100 messages a transaction, each sent and acknowledged by a command of its own, "
        "from a Shared subscription",
    ),
    "pulsar-ctp-100-batched": ("transform-batched", "the same, where the producer sends batches, as is its default"),
}
"""The cases that are counted in transactions: load and title."""


def cases(client: JavaClient) -> dict[str, Case]:
    """Return the cases, which use this client."""
    found: list[Case] = [
        LaunchCase(
            name="pulsar-start",
            title="start of the process to the first acknowledged message; then its resident memory",
            run=partial(_start, client),
        ),
        BrokerCase(
            name="pulsar-first",
            title="from the making of a client to its first commit: the first one of a process, and further ones",
            run=partial(_first, client),
        ),
    ]
    found += [
        BrokerCase(name=name, title=title, run=partial(_transactions, client, load))
        for name, (load, title) in TRANSACTIONS.items()
    ]
    found.append(
        BrokerCase(name="pulsar-bulk-100B", title="produce, then consume: 100 B, batched", run=partial(_bulk, client))
    )
    return {case.name: case for case in found}


def url(bootstrap: str) -> str:
    """Return the address as Pulsar's clients want it."""
    return f"pulsar://{bootstrap}"


def _transactions(client: JavaClient, load: str, session: Session, case: str) -> Iterator[Figure]:
    scale = session.scale
    phase, _ = client.measure(load, url(session.bootstrap), scale, scale.warm_up_s, session.usage)
    yield from phase_figures(case, "txn/s", phase)


def _bulk(client: JavaClient, session: Session, case: str) -> Iterator[Figure]:
    scale = session.scale
    phase, report = client.measure("bulk", url(session.bootstrap), scale, scale.bulk_warm_up_s, session.usage)
    yield from phase_figures(f"{case} produce", "msg/s", phase)
    yield Figure(case=f"{case} consume", name="msg/s", value=report.found / report.read_seconds)
    if (after := session.usage()) is not None:
        yield Figure(case=f"{case} afterwards", name="RSS MB", value=after.resident_bytes / 1e6)


def _first(client: JavaClient, session: Session, case: str) -> Iterator[Figure]:
    client.said("answers", url(session.bootstrap), session.scale)  # the broker's first message is not this case's
    said = client.said("first-transaction", url(session.bootstrap), session.scale)
    yield Figure(case=case, name="first in its process ms", value=said["first_ms"])
    yield Figure(case=case, name="further p50 ms", value=statistics.median(said["further_ms"]))


def _start(client: JavaClient, launcher: Launcher, case: str) -> Iterator[Figure]:
    """Start twice, and count the second time: the client's process is there before, and has met a broker once."""
    with client.talk("first-messages", "", NO_SCALE, 0) as talk:
        for counts in (False, True):
            with launcher.launch() as broker:
                assert broker.server is not None
                broker.wait_until_listening()
                talk.say(url(broker.bootstrap))
                talk.expect("ACKNOWLEDGED")
                if counts:
                    taken_s = time.monotonic() - broker.server.started_s
                    yield Figure(case=case, name="first ack s", value=taken_s)
                    yield Figure(case=case, name="RSS MB", value=settled_bytes(broker) / 1e6)
