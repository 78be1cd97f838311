"""A campaign: messages are consumed, transformed and produced in transactions under kill -9, each once in the output.

Theory of operation. Two clients share a subscription, or stand by for each other. A client in Python tops the input up.
Each kill strikes one of the three processes, the broker among them, at a moment that is drawn, after more transactions
were committed. Some transactions are aborted by their clients, and what a killed client leaves open is aborted when its
time is up. At the end another client, in Python, reads the output, and finds that nothing of the input is left.

On an Apache Pulsar that the environment names only the clients are killed.
"""

import contextlib
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar

from tests.conformance.brokers import free_port
from tests.pulsar import wire
from tests.pulsar.serving import Served
from tests.pulsar_clients.brokers import ON_PULSAR, PULSAR_URL, unique
from tests.pulsar_clients.transforming import Transformer

KILLS = int(os.environ.get("EXACTA_TEST_KILLS", "20"))
"""The kills of all campaigns of one client together."""
SEED = int(os.environ.get("EXACTA_TEST_SEED", "1"))
MESSAGES_PER_KILL = 60
LONGEST_DELAY_S = 0.3
DRAIN_TIMEOUT_S = 120.0
TIMEOUT_S = KILLS * 30 + 300
"""So long a test that runs campaigns may take."""


@contextlib.contextmanager
def broker_to_kill(folder: Path, **options: str) -> Iterator[Served | None]:
    """Run a broker that may be killed; on Apache Pulsar there is the one that nobody kills."""
    if ON_PULSAR:
        yield None
        return
    with Served(folder / "data", folder / "broker.log", free_port(), free_port(), **options) as process:
        yield process


def transform_under_kills(
    program: list[str],
    kind: str,
    acks: str,
    kills: int,
    folder: Path,
    *,
    in_batches: bool,
    buffer: str = "marker",
) -> str:
    """Run a campaign with two processes of a program, judge its output, and return a report.

    The program gets URL INPUT OUTPUT TYPE ACKS SEED, consumes by the subscription `transform`, and prints RUNNING when
    it takes messages, and COMMITTED, ABORTED or FAILED after each transaction.
    """
    case = f"{kind} {acks} {buffer}"
    chosen, began = random.Random(f"{SEED} {case}"), time.monotonic()
    source, target = unique(f"in-{kind}"), unique(f"out-{kind}")
    struck: Counter[str] = Counter()
    with broker_to_kill(folder, transaction_buffer=buffer) as served, contextlib.ExitStack() as running:
        url = PULSAR_URL if served is None else served.url
        assert url is not None
        clients = [
            running.enter_context(Transformer([*program, url, source, target, kind, acks], folder / f"{name}.log"))
            for name in "ab"
        ]
        with wire.client(url) as feeding:
            feed = Feed(feeding, source, in_batches=in_batches)
            for each in clients:
                each.wait_for("RUNNING")
            for index in range(kills):
                feed.add(MESSAGES_PER_KILL)
                wait_for_commits(clients, 1 + chosen.randrange(3))
                time.sleep(chosen.uniform(0, LONGEST_DELAY_S))  # it is the moment of the kill that is drawn
                struck[strike(index, chosen, clients, served)] += 1
            feed.settle()
            found = read_all(feeding, target, feed.sent)
            for each in clients:
                each.kill()
            if served is not None:
                assert left_over(feeding, source, kind) is None
    counts = Counter(found)
    assert {value: count for value, count in counts.items() if count > 1} == {}
    assert sorted(counts) == list(range(feed.sent))
    return (
        f"{case} on {'Apache Pulsar' if ON_PULSAR else 'Exacta'}: {kills} kills in {time.monotonic() - began:.0f} s "
        f"({who(struck)}); {feed.sent} messages transformed once each; transactions: {ends(clients)}"
    )


def who(struck: Counter[str]) -> str:
    """Return who was killed, and how often."""
    return ", ".join(f"{name} {count}" for name, count in struck.items())


def ends(clients: list[Transformer]) -> str:
    """Return how often transactions have ended in each way."""
    lines = [line.split()[0] for each in clients for line in each.lines]
    return ", ".join(f"{lines.count(word)} {word.lower()}" for word in ("COMMITTED", "ABORTED", "FAILED"))


def strike(index: int, chosen: random.Random, clients: list[Transformer], served: Served | None) -> str:
    """Kill one of them, and start it again; return who it was."""
    if served is not None and index % 3 == 2:
        served.restart_killed()
        return "the broker"
    victim = chosen.choice(clients)
    victim.kill()
    victim.start()
    victim.wait_for("RUNNING")
    return "a client"


def left_over(client: pulsar.Client, topic: str, kind: str) -> bytes | None:
    """Return a message of the input that is delivered although all have been transformed; None: there is none."""
    consumer = client.subscribe(topic, "transform", consumer_type=getattr(pulsar.ConsumerType, kind))
    try:
        found: bytes = consumer.receive(1000).data()
    except pulsar.Timeout:
        return None
    return found


class Feed:
    """The input, and how much of it is confirmed."""

    def __init__(self, client: pulsar.Client, topic: str, *, in_batches: bool) -> None:
        """Open a producer whose messages are numbered, so that none is sent twice."""
        self._producer = client.create_producer(
            topic,
            producer_name="feed",
            batching_enabled=in_batches,
            batching_max_messages=10,
            send_timeout_millis=0,
            block_if_queue_full=True,
        )
        self.sent = 0
        self._failed: list[Any] = []

    def add(self, count: int) -> None:
        """Send this many more."""
        for _ in range(count):
            self._producer.send_async(b"%d" % self.sent, self._done)
            self.sent += 1

    def settle(self) -> None:
        """Wait until all are confirmed."""
        self._producer.flush()
        assert self._failed == []

    def _done(self, result: Any, message_id: Any) -> None:
        if result != pulsar.Result.Ok:
            self._failed.append(result)


def wait_for_commits(clients: list[Transformer], count: int) -> None:
    """Wait until the clients have committed this many transactions more."""

    def commits() -> int:
        return sum(line.startswith("COMMITTED") for each in clients for line in list(each.lines))

    wanted, deadline = commits() + count, time.monotonic() + DRAIN_TIMEOUT_S
    while commits() < wanted:
        assert time.monotonic() < deadline, f"no commits: {[each.lines[-3:] for each in clients]}"
        time.sleep(0.01)  # there is nothing to wait on but what two processes say


def read_all(client: pulsar.Client, topic: str, count: int) -> list[int]:
    """Read the output until it has this many messages, and all that is behind the last of them."""
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found: list[int] = []
    deadline = time.monotonic() + DRAIN_TIMEOUT_S
    while len(found) < count or reader.has_message_available():
        assert time.monotonic() < deadline, (
            f"{len(found)} of {count}, lacking {sorted(set(range(count)) - set(found))[:20]}"
        )
        with contextlib.suppress(pulsar.Timeout):
            found.append(int(reader.read_next(timeout_millis=1000).data()))
    return found
