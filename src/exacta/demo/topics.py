"""Create, load, measure and read topics for the demo, as any Kafka client would.

This module owns the demo's use of confluent-kafka (librdkafka), which shares no code with Exacta. It judges nothing
(`verify` does).

Theory of operation: input is produced by an idempotent producer before anything is killed. Outputs are read at
`read_committed` up to the last stable offset as the broker gives it after the pipeline has stopped; what lies beyond
it, up to the high watermark, is hidden behind an open transaction, and its rows are lost as far as a reader can see.
"""

import time
from collections.abc import Callable, Iterable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from exacta.demo import flights
from exacta.demo.verify import SeenRow

_SILENT = 0  # what goes wrong is raised, not printed
_REQUEST_TIMEOUT_S = 20.0
_POLL_TIMEOUT_S = 1.0
_GAUGE_TIMEOUT_S = 0.5
_READ_STALLED_AFTER_S = 30.0
_PROGRESS_EVERY = 5_000


class LoadFailed(Exception):
    """A message of the input was not acknowledged."""


class ReadStalled(Exception):
    """The reader got neither rows nor the end of a partition for a long time."""


def wait_until_ready(bootstrap_servers: str, timeout_s: float) -> bool:
    """Wait until a broker answers a metadata request; say whether one did."""
    deadline = time.monotonic() + timeout_s
    while (left_s := deadline - time.monotonic()) > 0:
        admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": _SILENT})
        try:
            admin.list_topics(timeout=min(left_s, 1.0))
        except KafkaException:
            continue
        return True
    return False


def create(bootstrap_servers: str, topics: Iterable[str], partitions: int) -> None:
    """Create topics, each with this many partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": _SILENT})
    wanted = [NewTopic(topic, num_partitions=partitions, replication_factor=1) for topic in topics]
    for future in admin.create_topics(wanted, request_timeout=_REQUEST_TIMEOUT_S).values():
        future.result()


def load(
    bootstrap_servers: str, topic: str, messages: Iterable[flights.Message], loaded: Callable[[int], None]
) -> None:
    """Produce the messages in order, idempotently; call `loaded` with how many more were given to the producer.

    Raises LoadFailed if any of them was not acknowledged.
    """
    failures: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "enable.idempotence": True,
            "linger.ms": 20,
            "batch.size": 512 * 1024,
            "partitioner": "murmur2_random",
        }
    )
    count = 0
    for count, message in enumerate(messages, 1):
        while True:
            try:
                producer.produce(topic, key=message.key, value=message.value, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        if count % _PROGRESS_EVERY == 0:
            producer.poll(0)
            loaded(_PROGRESS_EVERY)
    loaded(count % _PROGRESS_EVERY)
    left = producer.flush(_REQUEST_TIMEOUT_S)
    if left or failures:
        raise LoadFailed(f"{left + len(failures)} messages were not acknowledged {failures[:1]}")


class Gauge:
    """Measure how far the logs of some topics have grown, again and again on one connection."""

    def __init__(self, bootstrap_servers: str, topics: Iterable[str]) -> None:
        self._consumer = _consumer(bootstrap_servers, read_committed=False)
        self._topics = list(topics)
        self._partitions: list[TopicPartition] = []

    def offsets(self) -> int:
        """Return the sum of the high watermarks, or -1 if the broker does not answer soon."""
        try:
            if not self._partitions:
                for topic in self._topics:
                    found = self._consumer.list_topics(topic, timeout=_GAUGE_TIMEOUT_S).topics[topic].partitions
                    self._partitions += [TopicPartition(topic, partition) for partition in found]
            marks = [self._consumer.get_watermark_offsets(each, timeout=_GAUGE_TIMEOUT_S) for each in self._partitions]
        except KafkaException:
            return -1
        return -1 if None in marks else sum(high for _, high in marks)

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()


def end_offsets(bootstrap_servers: str, topic: str, *, read_committed: bool = False) -> dict[int, int]:
    """Return each partition's high watermark, or its last stable offset."""
    consumer = _consumer(bootstrap_servers, read_committed=read_committed)
    try:
        partitions = consumer.list_topics(topic, timeout=_REQUEST_TIMEOUT_S).topics[topic].partitions
        ends: dict[int, int] = {}
        for partition in sorted(partitions):
            _, ends[partition] = consumer.get_watermark_offsets(
                TopicPartition(topic, partition), timeout=_REQUEST_TIMEOUT_S
            )
        return ends
    finally:
        consumer.close()


def read_committed(bootstrap_servers: str, topic: str, seen: Callable[[int], None]) -> list[SeenRow]:
    """Read a topic from its beginning to its end at isolation level `read_committed`, each partition in offset order.

    Raises ReadStalled.
    """
    return read(bootstrap_servers, topic, seen, read_committed=True)


def read(bootstrap_servers: str, topic: str, seen: Callable[[int], None], *, read_committed: bool) -> list[SeenRow]:
    """Read a topic whole, at the isolation level asked for."""
    consumer = _consumer(bootstrap_servers, read_committed=read_committed)
    rows: list[SeenRow] = []
    try:
        partitions = set(consumer.list_topics(topic, timeout=_REQUEST_TIMEOUT_S).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        heard_at = time.monotonic()
        while partitions:
            messages = consumer.consume(10_000, timeout=_POLL_TIMEOUT_S)
            if messages:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > _READ_STALLED_AFTER_S:
                raise ReadStalled(f"{topic}: nothing more from partitions {sorted(partitions)} after {len(rows)} rows")
            for message in messages:
                error = message.error()
                if error is None:
                    rows.append(SeenRow(message.partition(), message.offset(), message.key(), message.value()))
                elif error.code() == KafkaError._PARTITION_EOF:
                    partitions.discard(message.partition())
                elif not error.retriable():
                    raise KafkaException(error)
            seen(len(messages))
    finally:
        consumer.close()
    return rows


def _consumer(bootstrap_servers: str, *, read_committed: bool) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "exacta-demo-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "log_level": _SILENT,
            "isolation.level": "read_committed" if read_committed else "read_uncommitted",
        }
    )
