"""A campaign of joint transactions: `Transfers.java` does orders over both protocols under kill -9, each of them once.

Theory of operation. Two processes have both clients for Java each. Orders come from a Pulsar topic, by one shared
subscription, and from a Kafka topic, with a partition for each process. Every kill strikes one of the processes or
the broker, at a moment that is drawn, after more transactions were committed. Meanwhile readers of both protocols read
all that is written (`joint_readers.py`), and a `Looker` looks at all partitions at once. When all orders are done, and
nothing is open any more, the log is read as it lies. It says what each reader must have got, and `Judge` says whether
the looks were right.
"""

import random
import time
from collections import Counter, defaultdict
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.brokers import HOST, free_port
from tests.kafka.wire import Wire
from tests.pulsar import wire as pulsar_wire
from tests.pulsar.serving import Served
from tests.pulsar_clients.brokers import unique
from tests.pulsar_clients.campaign import (
    DRAIN_TIMEOUT_S,
    LONGEST_DELAY_S,
    MESSAGES_PER_KILL,
    SEED,
    Feed,
    ends,
    left_over,
    strike,
    wait_for_commits,
    who,
)
from tests.pulsar_clients.joint_readers import LASTING, Live, Values, by_java, lag_of_group
from tests.pulsar_clients.looks import Judge, Looker, log_of, look
from tests.pulsar_clients.sidecar_looks import SidecarJudge
from tests.pulsar_clients.transforming import Transformer
from tests.waiting import wait_until

ACCOUNTS = 4
PARTITIONS = 2
"""Of Kafka's orders: one for each process."""
GROUP = "transfers"
RECORDS_PER_KILL = 20
"""Orders by Kafka's side, beside those by Pulsar's."""

SHORT_DELAY_S = 0.03
"""So long the beginning of a transaction takes, or its end."""


class Topics:
    """The names of one campaign."""

    def __init__(self) -> None:
        """Choose names that nobody has used."""
        self.run = unique("")
        self.orders, self.asked = f"orders{self.run}", f"asked{self.run}"
        self.outputs = [f"{each}{self.run}" for each in ("kafka", "pulsar")]
        self.accounts = [f"account{number}{self.run}" for number in range(ACCOUNTS)]
        self.written = [*self.outputs, *self.accounts]

    def create(self, bootstrap: str, buffer: str) -> None:
        """Create them; `buffer` is the `transaction.buffer` of those that transactions write to."""
        new = [NewTopic(each, 1, 1, config={"transaction.buffer": buffer}) for each in self.written]
        new += [NewTopic(self.orders, 1, 1), NewTopic(self.asked, PARTITIONS, 1)]
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for created in admin.create_topics(new).values():
            created.result(DRAIN_TIMEOUT_S)


class KafkaFeed:
    """The orders by Kafka's side, whose names begin with a letter."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        """Open a producer that sends nothing twice."""
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **LASTING})
        self._failed: list[Any] = []
        self.sent = 0

    def add(self, count: int) -> None:
        """Send this many more."""
        for _ in range(count):
            value = b"k%d" % self.sent
            self._producer.produce(self._topic, value, partition=self.sent % PARTITIONS, on_delivery=self._done)
            self.sent += 1
        self._producer.poll(0)

    def settle(self) -> None:
        """Wait until all are confirmed."""
        assert self._producer.flush(DRAIN_TIMEOUT_S) == 0
        assert self._failed == []

    def _done(self, error: Any, _: Any) -> None:
        if error is not None:
            self._failed.append(error)


def transfer_under_kills(program: list[str], kills: int, folder: Path, buffer: str) -> str:
    """Run a campaign, judge it, and return a report.

    The program gets BOOTSTRAP URL RUN PARTITION SEED. It prints RUNNING when it takes orders, and COMMITTED, ABORTED or
    FAILED after each transaction.
    """
    chosen, began, topics = random.Random(f"{SEED} joint"), time.monotonic(), Topics()
    struck: Counter[str] = Counter()
    address = (HOST, free_port())
    bootstrap = f"{HOST}:{address[1]}"
    with Served(folder / "data", folder / "broker.log", free_port(), address[1]) as served, ExitStack() as running:
        topics.create(bootstrap, buffer)
        arguments = [*program, bootstrap, served.url, topics.run]
        clients = [
            running.enter_context(Transformer([*arguments, str(number)], folder / f"{number}.log"))
            for number in range(PARTITIONS)
        ]
        client = running.enter_context(pulsar_wire.client(served.url))
        live = running.enter_context(Live(bootstrap, client, topics.written))
        looker = running.enter_context(Looker(address, topics.written))
        orders, asked = Feed(client, topics.orders, in_batches=True), KafkaFeed(bootstrap, topics.asked)
        for each in clients:
            each.wait_for("RUNNING")
        for index in range(kills):
            orders.add(MESSAGES_PER_KILL)
            asked.add(RECORDS_PER_KILL)
            wait_for_commits(clients, 1 + chosen.randrange(3))
            wait_for_moment(chosen, clients)
            struck[strike(index, chosen, clients, served)] += 1
        orders.settle()
        asked.settle()
        wanted = [*map(str, range(orders.sent)), *(f"k{number}" for number in range(asked.sent))]
        live.wait_for(topics.outputs, len(wanted))
        for each in clients:
            each.kill()
        judge = judged(address, topics, looker, buffer)
        of_all = {topic: judge.values(topic) for topic in topics.written}
        check_orders(of_all, topics, wanted)
        live.check(of_all)
        assert by_java(bootstrap, served.url, topics.written) == {"Kafka": of_all, "Pulsar": of_all}
        assert left_over(client, topics.orders, "Shared") is None
        assert lag_of_group(bootstrap, GROUP, topics.asked, PARTITIONS) == [0] * PARTITIONS
    return (
        f"joint, {buffer} topics: {kills} kills in {time.monotonic() - began:.0f} s ({who(struck)}); "
        f"{len(wanted)} orders done once each; "
        f"transactions: {ends(clients)}; of {len(looker.looks)} looks {judge.partial} have shown a part of a "
        "transaction, each because of an older one"
    )


def wait_for_moment(chosen: random.Random, clients: list[Transformer]) -> None:
    """Wait for the moment of the next kill: soon after a transaction begins or its end is asked for, or at any time."""
    word = chosen.choice(["BEGINNING", "ENDING", None])
    if word is None:
        time.sleep(chosen.uniform(0, LONGEST_DELAY_S))  # it is the moment of the kill that is drawn
        return

    def said() -> int:
        return sum(line == word for each in clients for line in list(each.lines))

    before, deadline = said(), time.monotonic() + DRAIN_TIMEOUT_S
    while said() == before:
        assert time.monotonic() < deadline, f"no {word}: {[each.lines[-3:] for each in clients]}"
        time.sleep(0.001)  # there is nothing to wait on but what two processes say
    time.sleep(chosen.uniform(0, SHORT_DELAY_S))


def judged(address: tuple[str, int], topics: Topics, looker: Looker, buffer: str) -> Judge | SidecarJudge:
    """Wait until nothing is open any more, and judge the log and the looks."""
    wire = Wire(address)
    with closing(wire.socket):
        # What was killed is aborted when its time is up.
        wait_until(
            lambda: all(seen.stable == seen.end for seen in look(wire, topics.written).values()), DRAIN_TIMEOUT_S
        )
        looks = [*looker.stop(), look(wire, topics.written)]
        log = log_of(wire, topics.written)
        judge = SidecarJudge(log) if buffer == "sidecar" else Judge(log)
    judge.judge(looks)
    assert judge.anomalies == [], "\n".join(judge.anomalies[:20])
    return judge


def check_orders(values: Values, topics: Topics, wanted: list[str]) -> None:
    """Check that every order is in each output once, and has moved an amount between two accounts once."""
    done = [[tuple(value.split()) for value in values[topic]] for topic in topics.outputs]
    for topic, each in zip(topics.outputs, done, strict=True):
        counts = Counter(number for _, number in each)
        twice = [entry for entry in each if counts[entry[1]] > 1]
        assert twice == [], f"{topic} has some twice: {twice}"
        assert sorted(counts) == sorted(wanted), f"{topic} lacks {sorted(set(wanted) - set(counts))[:20]}"
    assert sorted(done[0]) == sorted(done[1]), "the outputs name other transactions"
    moved: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for topic in topics.accounts:
        for value in values[topic]:
            *which, amount = value.split()
            moved[tuple(which)].append(int(amount))
    assert sorted(moved) == sorted(done[0]), "the accounts name other transactions"
    odd = {which: amounts for which, amounts in moved.items() if len(amounts) != 2 or sum(amounts) != 0}
    assert odd == {}, f"amounts do not add up: {odd}"
