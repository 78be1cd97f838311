"""What a test of a tool works with: the tools, a broker, and a client of another make that prepares what they find.

Waiting always has a deadline. Apache Kafka answers some changes before all of its parts know them, so what a tool
finds afterwards is asked for until it is there (`until`).
"""

import itertools
import os
import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.tools.toolbox import Result, Toolbox

CALL_TIMEOUT_S = 30.0
# Settings of a topic whose records are old: they are not to be dropped for their age.
FOR_EVER = {"retention_ms": "-1"}
_NAP_S = 0.05
_ARGPARSE = {
    # Whose option for the broker stands after a word for what to do.
    "kafka-cluster",
}
_SILENT = 0
_numbers = itertools.count()
_Found = TypeVar("_Found")


class Bench:
    """The tools on one broker; all names made here are new."""

    def __init__(self, bootstrap: str, tools: Toolbox) -> None:
        """Bind the tools to a broker."""
        self.bootstrap = bootstrap
        self._tools = tools
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": _SILENT})
        self._consumers: list[Consumer] = []
        self._producers: list[Producer] = []
        (node,) = self._admin.list_topics(timeout=CALL_TIMEOUT_S).brokers
        self.node = str(node)

    def run(self, tool: str, *arguments: str, stdin: str = "") -> Result:
        """Run a tool on the broker, whatever comes of it."""
        address = ("--bootstrap-server", self.bootstrap)
        whole = (*arguments, *address) if tool in _ARGPARSE else (*address, *arguments)
        return self._tools.run(tool, *whole, stdin=stdin)

    def good(self, tool: str, *arguments: str, stdin: str = "") -> Result:
        """Run a tool that must succeed."""
        result = self.run(tool, *arguments, stdin=stdin)
        assert result.status == 0, (result.out, result.err)
        return result

    def bad(self, tool: str, *arguments: str) -> str:
        """Run a tool that must fail with status 1; return all that it says."""
        result = self.run(tool, *arguments)
        assert result.status == 1, (result.out, result.err)
        return result.out + result.err

    def name(self, kind: str) -> str:
        """Return a name that nobody has used."""
        return f"{kind}-{os.getpid()}-{next(_numbers)}"

    def topic(self, partitions: int = 1, **config: str) -> str:
        """Create a topic, without a tool."""
        name = self.name("topic")
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self._admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(CALL_TIMEOUT_S)
        return name

    def fill(self, topic: str, count: int, *, partition: int = 0, first_time: int = 0) -> None:
        """Append records v0, v1, … with the keys k0, k1, …; a thousand milliseconds between, if `first_time` is set."""
        producer = self.producer()
        for index in range(count):
            time_ms = first_time + index * 1000 if first_time else 0
            producer.produce(topic, f"v{index}", f"k{index}", partition=partition, timestamp=time_ms)
        assert producer.flush(CALL_TIMEOUT_S) == 0

    def producer(self, transactional_id: str | None = None, **options: object) -> Producer:
        """Make an idempotent producer, transactional with an id."""
        settings = {key.replace("_", "."): value for key, value in options.items()}
        settings |= {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "log_level": _SILENT}
        if transactional_id is not None:
            settings["transactional.id"] = transactional_id
        producer = Producer(settings)
        if transactional_id is not None:
            producer.init_transactions(CALL_TIMEOUT_S)
        self._producers.append(producer)
        return producer

    def consumer(self, group: str, **options: object) -> Consumer:
        """Make a consumer that commits only when told."""
        settings = {key.replace("_", "."): value for key, value in options.items()}
        settings |= {"bootstrap.servers": self.bootstrap, "group.id": group, "enable.auto.commit": False}
        settings |= {"auto.offset.reset": "earliest", "log_level": _SILENT}
        consumer = Consumer(settings)
        self._consumers.append(consumer)
        return consumer

    def commit(self, group: str, topic: str, *offsets: int) -> None:
        """Commit an offset for each partition from 0 on, without being a member."""
        wanted = [TopicPartition(topic, partition, offset) for partition, offset in enumerate(offsets)]
        consumer = self.consumer(group)

        def refused() -> KafkaException | None:
            try:
                consumer.commit(offsets=wanted, asynchronous=False)
            except KafkaException as error:  # Apache Kafka's first commit comes before its coordinator is ready
                return error
            return None

        self.until(refused, lambda error: error is None)

    def member(self, group: str, topic: str, partitions: int, **options: object) -> Consumer:
        """Join a group as its only member; return once all partitions are assigned."""
        consumer = self.consumer(group, **options)
        consumer.subscribe([topic])
        deadline = time.monotonic() + CALL_TIMEOUT_S
        while len(consumer.assignment()) < partitions:
            assert time.monotonic() < deadline, "the group does not form"
            consumer.poll(0.1)
        return consumer

    def until(self, look: Callable[[], _Found], wanted: Callable[[_Found], bool]) -> _Found:
        """Look until what is found is wanted; fails with what was found last."""
        deadline = time.monotonic() + CALL_TIMEOUT_S
        while not wanted(found := look()):
            assert time.monotonic() < deadline, found
            time.sleep(_NAP_S)  # there is nothing to wait on but the answer itself
        return found

    def close_clients(self) -> None:
        """Close what a test has opened."""
        for consumer in self._consumers:
            consumer.close()
        self._consumers.clear()
        self._producers.clear()
