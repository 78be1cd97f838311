"""A Kafka Streams application with exactly_once_v2 under kill -9, of itself and of the broker (the suite `streams`).

Theory of operation: orders are topped up for as long as there is something to kill. Each kill waits until the
application has written more, and most until it is seen to be in a transaction. At the end every order must have been
counted once, in the order of the log, and the changelog must say the same as the output.
"""

import contextlib
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.brokers import BrokerProcess, broker_name, broker_process
from tests.spark.clusters import held_back, read_committed
from tests.streams.application import Application, compiled

KILLS = int(os.environ.get("EXACTA_TEST_KILLS", "12"))
SEED = int(os.environ.get("EXACTA_TEST_SEED", "1"))
PARTITIONS = 2
CUSTOMERS = 24
ORDERS_PER_KILL = 300
LONGEST_DELAY_S = 0.5
PROGRESS_TIMEOUT_S = 120.0
CALL_TIMEOUT_S = 30.0
_SILENT = 0
_Found = TypeVar("_Found")

pytestmark = pytest.mark.timeout(600 + 60 * KILLS)


class Shop:
    """The topics, what was ordered, and how far the application has come."""

    def __init__(self, bootstrap: str, name: str) -> None:
        """Create the topics, and give each customer a name."""
        self.bootstrap = bootstrap
        self.names, self.orders, self.totals = f"{name}-names", f"{name}-orders", f"{name}-totals"
        self.changelog = f"{name}-totals-changelog"
        self._group = name
        settings = {"bootstrap.servers": bootstrap, "log_level": _SILENT, "reconnect.backoff.max.ms": 200}
        admin = AdminClient(settings)
        topics = [NewTopic(topic, PARTITIONS, 1) for topic in (self.names, self.orders, self.totals)]
        for created in admin.create_topics(topics).values():
            created.result(CALL_TIMEOUT_S)
        # Partitions by key as Java's clients choose them.
        self._producer = Producer(settings | {"enable.idempotence": True, "partitioner": "murmur2_random"})
        self._settings = settings
        self.amounts: dict[str, list[int]] = {f"c{index}": [] for index in range(CUSTOMERS)}
        for customer in self.amounts:
            self._producer.produce(self.names, key=customer, value=customer.upper())
        self.settle()

    @property
    def count(self) -> int:
        """Return how many orders there are."""
        return sum(map(len, self.amounts.values()))

    def order(self, count: int, chosen: random.Random) -> None:
        """Place this many orders."""
        for number in range(self.count, self.count + count):
            customer, amount = chosen.choice(sorted(self.amounts)), chosen.randrange(1, 1000)
            self.amounts[customer].append(amount)
            self._producer.produce(self.orders, key=str(number), value=f"{customer} {amount}")

    def settle(self) -> None:
        """Wait until all that was sent is in the log."""
        assert self._producer.flush(PROGRESS_TIMEOUT_S) == 0

    def written(self) -> int:
        """Return the end of the application's output: markers and what is in open transactions count too."""
        return self._end(self.totals)

    def has_written(self, least: int) -> bool:
        """Tell whether so much is written."""
        return self.written() >= least

    def order_until_held_back(self, chosen: random.Random) -> bool:
        """Place some more orders; tell whether a transaction over their totals is open."""
        self.order(5, chosen)
        return bool(held_back(self.bootstrap, self.totals))

    def names_are_known(self) -> bool:
        """Tell whether the application has read all names."""
        consumer = self._consumer()
        try:
            partitions = [TopicPartition(self.names, index) for index in range(PARTITIONS)]
            done = sum(max(0, each.offset) for each in consumer.committed(partitions, CALL_TIMEOUT_S))
        finally:
            consumer.close()
        return done == self._end(self.names)

    def _consumer(self) -> Consumer:
        return Consumer(self._settings | {"group.id": self._group, "isolation.level": "read_uncommitted"})

    def _end(self, topic: str) -> int:
        consumer = self._consumer()
        try:
            partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
            return sum(consumer.get_watermark_offsets(each, CALL_TIMEOUT_S)[1] for each in partitions)
        finally:
            consumer.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    folder = tmp_path / "broker"
    folder.mkdir()
    with broker_process(folder, settings=["group.min.session.timeout.ms=1000"]) as process:
        yield process


@pytest.fixture
def application(broker: BrokerProcess, tmp_path: Path) -> Iterator[Application]:
    made = Application(compiled(tmp_path / "classes"), broker.bootstrap, f"shop-{os.getpid()}", tmp_path)
    yield made
    made.kill()


def wait_until(look: Callable[[], _Found], what: str) -> _Found:
    """Look until what is found is true; there is nothing to wait on but the broker's answers."""
    deadline = time.monotonic() + PROGRESS_TIMEOUT_S
    while True:
        with contextlib.suppress(KafkaException):  # of a broker that has just come back
            if found := look():
                return found
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


def test_every_order_counts_once_whoever_is_killed(
    broker: BrokerProcess, application: Application, reports: list[str]
) -> None:
    chosen, began = random.Random(SEED), time.monotonic()
    shop = Shop(broker.bootstrap, application.name)
    application.start()
    wait_until(shop.names_are_known, "the names")
    struck: Counter[str] = Counter()
    for index in range(KILLS):
        (before,) = wait_until(lambda: (shop.written(),), "the broker")
        wanted = before + chosen.randrange(1, ORDERS_PER_KILL // 2)
        shop.order(ORDERS_PER_KILL, chosen)
        wait_until(partial(shop.has_written, wanted), "progress")
        if chosen.random() < 0.7:
            wait_until(partial(shop.order_until_held_back, chosen), "a transaction")
        else:
            time.sleep(chosen.uniform(0, LONGEST_DELAY_S))  # it is the moment of the kill that is drawn
        if index % 3 == 2:
            broker.restart_killed()
            struck["the broker"] += 1
        else:
            application.kill()
            struck["the application"] += 1
            struck["of these in a transaction"] += bool(held_back(shop.bootstrap, shop.totals))
            application.start()
    shop.settle()
    wait_until_counted(shop)
    application.stop()
    check(shop)
    seconds, course = time.monotonic() - began, ", ".join(f"{who} {count}" for who, count in struck.items())
    reports.append(
        f"Kafka Streams on {broker_name()}: {KILLS} kills in {seconds:.0f} s ({course}); {shop.count} orders counted "
        f"once each; threads that failed and were replaced: {len(application.failures)}"
    )


def wait_until_counted(shop: Shop) -> None:
    """Wait until there is a committed total for each order."""
    deadline = time.monotonic() + PROGRESS_TIMEOUT_S
    while len(found := read_committed(shop.bootstrap, shop.totals)) < shop.count:
        assert time.monotonic() < deadline, f"{len(found)} of {shop.count} orders were counted"


def check(shop: Shop) -> None:
    """Check that each customer's totals go up order by order, and that the changelog tells the same."""
    assert held_back(shop.bootstrap, shop.totals) == {}
    totals = by_customer(read_committed(shop.bootstrap, shop.totals))
    assert totals == by_customer(read_committed(shop.bootstrap, shop.changelog))
    assert totals.keys() == {customer for customer, amounts in shop.amounts.items() if amounts}
    for customer, said in totals.items():
        names, numbers, sums = zip(*(line.split() for line in said), strict=True)
        amounts = shop.amounts[customer]
        assert set(names) == {customer.upper()}
        assert [int(number) for number in numbers] == [*range(1, len(amounts) + 1)]
        steps = [int(after) - int(before) for before, after in zip(("0", *sums), sums, strict=False)]
        # Orders of two partitions may have come in any order.
        assert sorted(steps) == sorted(amounts)


def by_customer(records: list[tuple[int, bytes | None, bytes | None]]) -> dict[str, list[str]]:
    """Return the values of each key, in the order of the log."""
    found: dict[str, list[str]] = {}
    for _, key, value in records:
        assert key is not None
        assert value is not None
        found.setdefault(key.decode(), []).append(value.decode())
    return found
