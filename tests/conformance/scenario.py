"""What every scenario needs: a client library, a broker, names of its own, and ways to read and to wait.

Reading never guesses when "all" has come: it asks the broker for the end under the reader's isolation and reads until
the client's own position is there. Waiting always has a deadline.
"""

import itertools
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from tests.conformance.brokers import ON_SIDECAR
from tests.conformance.clients import Client, Consumer, GroupProtocol, Isolation, Producer, Record, TopicPartition
from tests.conformance.clients.interface import CALL_TIMEOUT_S
from tests.conformance.topics import Topics

POLL_S = 0.1
"""One poll of a consumer: short, so that several members can be served in turn."""
BUFFER = "transaction.buffer"
Wanted = TypeVar("Wanted")


class Scenario:
    """One client library against one broker; all names made here are new."""

    def __init__(
        self, client: Client, bootstrap: str, name: str, protocol: GroupProtocol = GroupProtocol.CLASSIC
    ) -> None:
        """Bind a client to a broker; `name` makes the names unique, `protocol` is that of its groups."""
        self.client = client
        self.protocol = protocol
        self.on_sidecar = ON_SIDECAR
        self.bootstrap = bootstrap
        self.topics = Topics(bootstrap)
        self._name = name
        self._numbers = itertools.count()

    def new_name(self, kind: str) -> str:
        """Return a name that nobody has used: for groups, transactional ids, topics that do not exist yet."""
        return f"{self._name}-{kind}-{next(self._numbers)}"

    def holds(self, *, marker: Wanted, sidecar: Wanted) -> Wanted:
        """Return what holds on the kind of topic that the scenario runs on."""
        return sidecar if self.on_sidecar else marker

    def topic(self, partitions: int = 1, **configs: str) -> str:
        """Create a topic; configurations have `_` for `.` in their names."""
        asked = {name.replace("_", "."): value for name, value in configs.items()}
        if self.on_sidecar:
            asked = {BUFFER: "sidecar"} | asked
        return self.topics.create(self.new_name("topic"), partitions, asked)

    def partition(self) -> TopicPartition:
        """Create a topic with one partition and return that."""
        return TopicPartition(self.topic())

    def marker_partition(self) -> TopicPartition:
        """Create a topic that is none of the sidecar topics. Here readers wait for the end of a transaction."""
        return TopicPartition(self.topic(transaction_buffer="marker") if self.on_sidecar else self.topic())

    def producer(self, **options: Any) -> Producer:
        """Make a producer."""
        return self.client.producer(self.bootstrap, **options)

    def transactional(self, transactional_id: str | None = None, **options: Any) -> Producer:
        """Make a transactional producer that has taken its id over."""
        producer = self.producer(transactional_id=transactional_id or self.new_name("id"), **options)
        producer.init_transactions()
        return producer

    def consumer(
        self,
        group_id: str | None = None,
        isolation: Isolation = Isolation.COMMITTED,
        instance_id: str | None = None,
    ) -> Consumer:
        """Make a consumer; with an instance id it is a static member."""
        return self.client.consumer(
            self.bootstrap,
            group_id=group_id,
            isolation=isolation,
            instance_id=instance_id,
            protocol=self.protocol if group_id is not None else GroupProtocol.CLASSIC,
        )

    def last_stable_offset(self, partition: TopicPartition) -> int:
        """Ask the broker."""
        return self.topics.end_offset(partition, Isolation.COMMITTED)

    def high_watermark(self, partition: TopicPartition) -> int:
        """Ask the broker."""
        return self.topics.end_offset(partition, Isolation.UNCOMMITTED)

    def fill(self, partition: TopicPartition, values: Iterable[bytes]) -> None:
        """Write records outside any transaction and wait until they are acknowledged."""
        producer = self.producer()
        send_all(producer, partition, values)
        producer.close()

    def read(self, partition: TopicPartition, isolation: Isolation = Isolation.COMMITTED) -> list[bytes | None]:
        """Return the values of all records that a reader sees now, in order."""
        return [record.value for record in self.read_records([partition], isolation)]

    def read_records(
        self, partitions: Collection[TopicPartition], isolation: Isolation = Isolation.COMMITTED
    ) -> list[Record]:
        """Return all records that a reader sees now, in order within each partition."""
        ends = {partition: self.topics.end_offset(partition, isolation) for partition in partitions}
        consumer = self.consumer(isolation=isolation)
        consumer.assign(dict.fromkeys(partitions, 0))
        records: list[Record] = []

        def all_read() -> bool:
            records.extend(consumer.poll(POLL_S))
            return all(consumer.position(partition) >= end for partition, end in ends.items())

        wait_until(all_read, f"a {isolation.value} reader to reach {ends}")
        consumer.close()
        return [record for record in records if record.offset < ends[TopicPartition(record.topic, record.partition)]]

    def wait_for_what_was_held_back(self, partition: TopicPartition) -> list[bytes | None]:
        """Read until records come that were behind an open transaction: the broker has given that up."""
        consumer = self.consumer()
        consumer.assign({partition: 0})
        arrived: list[bytes | None] = []

        def came_through() -> bool:
            arrived.extend(record.value for record in consumer.poll(POLL_S))
            return bool(arrived)

        wait_until(came_through, "the broker to abort the transaction that is over its time")
        return arrived

    def send_offsets(self, producer: Producer, offsets: dict[TopicPartition, int], group_id: str) -> None:
        """Commit offsets in the transaction for a group that has no members."""
        consumer = self.consumer(group_id)
        producer.send_offsets(offsets, consumer.group_metadata())
        consumer.close()

    def committed(self, group_id: str, partition: TopicPartition) -> int | None:
        """Ask for a group's offset, as a new consumer would."""
        consumer = self.consumer(group_id)
        offset = consumer.committed(partition)
        consumer.close()
        return offset


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = CALL_TIMEOUT_S) -> None:
    """Ask again and again, where the asking itself waits; raises AssertionError at the deadline."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout_s:.0f} s for {what}"


def send_all(producer: Producer, partition: TopicPartition, values: Iterable[bytes]) -> list[int]:
    """Send the values in order and return the acknowledged offsets."""
    sent = [producer.send(partition.topic, value, partition=partition.partition) for value in values]
    producer.flush()
    return offsets_of(sent)


def offsets_of(sent: Sequence["Future[int]"]) -> list[int]:
    """Wait for the deliveries; raises ClientError for the first that failed."""
    return [future.result(CALL_TIMEOUT_S) for future in sent]


def values(prefix: str, count: int, start: int = 0) -> list[bytes]:
    """Return distinct values."""
    return [f"{prefix}-{number}".encode() for number in range(start, start + count)]
