"""confluent-kafka, that is librdkafka: the C client under most languages but Java and Go."""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

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

ABORT_TIMEOUT_S = 3.0
_FENCED = {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}
_COMMON = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": RETRY_BACKOFF_MS,
    "topic.metadata.refresh.sparse": True,
    "topic.metadata.refresh.fast.interval.ms": 50,
    # Its default forgets all brokers when none is connected, but not the coordinators that it has cached, and then
    # send_offsets_to_transaction waits for ever (librdkafka issue 5511).
    "metadata.recovery.strategy": "none",
    "log_level": 0,
}


def _translated(error: KafkaError) -> ClientError:
    if error.code() in _FENCED:
        return FencedError(error)
    if error.txn_requires_abort():
        return AbortRequiredError(error)
    return (CallAgainError if error.retriable() else ClientError)(error)


@contextlib.contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except KafkaException as exception:
        raise _translated(exception.args[0]) from exception
    except SystemError as clash:
        raise _translated(_fatal_error(clash)) from clash


def _fatal_error(clash: SystemError) -> KafkaError:
    """Return the fatal error that the binding had raised before it went on to call a delivery callback."""
    cause = clash.__cause__
    while isinstance(cause, SystemError):
        cause = cause.__cause__
    if not isinstance(cause, KafkaException):
        raise clash
    return cause.args[0]


@translated_by(_translating)
class _Producer:
    def __init__(self, configuration: dict[str, object]) -> None:
        self._producer = confluent_kafka.Producer(configuration)
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

        def delivered(error: KafkaError | None, message: confluent_kafka.Message) -> None:
            try:
                if error is not None:
                    future.set_exception(_translated(error))
                else:
                    future.set_result(message.offset())
            except SystemError as clash:
                future.set_exception(_translated(_fatal_error(clash)))
                raise

        self._producer.produce(
            topic,
            value=value,
            key=key,
            partition=partition,
            headers=list(headers) or None,
            timestamp=timestamp_ms or 0,
            on_delivery=delivered,
        )
        self._producer.poll(0)
        return future

    def flush(self) -> None:
        left = self._producer.flush(CALL_TIMEOUT_S)
        if left:
            raise ClientError(f"{left} records are left after the time-out of flush")

    def init_transactions(self) -> None:
        self._producer.init_transactions(CALL_TIMEOUT_S)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send_offsets(self, offsets: Mapping[TopicPartition, int], group: object) -> None:
        self._producer.send_offsets_to_transaction(_offsets(offsets), group, CALL_TIMEOUT_S)

    def commit(self) -> None:
        self._producer.commit_transaction(CALL_TIMEOUT_S)

    def abort(self) -> None:
        # A batch that waits to be sent again is purged by the next call only; this one waits for it in vain.
        self._producer.abort_transaction(ABORT_TIMEOUT_S)

    def close(self) -> None:
        if self._open:
            self._open = False
            # A fenced producer says so once more.
            with contextlib.suppress(ClientError), _translating():
                self._producer.purge()
                self._producer.flush(0)
            # The handle, with its threads, ends with the last reference.
            del self._producer


@translated_by(_translating)
class _Consumer:
    def __init__(self, configuration: dict[str, object]) -> None:
        self._consumer = confluent_kafka.Consumer(configuration)
        self._positions: dict[TopicPartition, int] = {}
        self._open = True

    def subscribe(self, topics: Collection[str]) -> None:
        self._consumer.subscribe(list(topics))

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._positions = dict(offsets)
        self._consumer.assign(_offsets(offsets))

    def poll(self, timeout_s: float) -> list[Record]:
        first = self._consumer.poll(timeout_s)
        messages = [first, *self._consumer.consume(500, 0)] if first is not None else []
        records = []
        for message in messages:
            partition = TopicPartition(message.topic(), message.partition())
            error = message.error()
            if error is None:
                records.append(_record(message))
                self._positions[partition] = message.offset() + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                # The only place where librdkafka tells how far it has read past markers and aborted records.
                self._positions[partition] = message.offset()
            elif error.fatal() or not error.retriable():
                raise _translated(error)
        return records

    def assignment(self) -> set[TopicPartition]:
        return {TopicPartition(entry.topic, entry.partition) for entry in self._consumer.assignment()}

    def position(self, partition: TopicPartition) -> int:
        return self._positions.get(partition, -1)  # nothing has come of it yet

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        results = self._consumer.commit(offsets=_offsets(offsets), asynchronous=False)
        for result in results:
            if result.error is not None:
                raise _translated(result.error)

    def committed(self, partition: TopicPartition, timeout_s: float = CALL_TIMEOUT_S) -> int | None:
        [found] = self._consumer.committed([confluent_kafka.TopicPartition(*partition)], timeout_s)
        if found.error is not None:
            raise _translated(found.error)
        return found.offset if found.offset >= 0 else None

    def group_metadata(self) -> object:
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        if self._open:
            self._open = False
            self._consumer.close()


class LibrdkafkaClient(Client):
    """Adapt confluent-kafka."""

    name = "confluent-kafka"
    logger = "confluent_kafka"
    compressions = ("gzip", "snappy", "lz4", "zstd")
    sends_group_metadata = True
    registers_by_writing = False
    waits_for_stable_offsets = True
    speaks_consumer_protocol = True
    joins_again_when_fenced = False

    def new_producer(self, bootstrap: str, wanted: Producing) -> Producer:
        """Make a producer."""
        configuration = {
            **_COMMON,
            **wanted.settings(),
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
        }
        if wanted.transactional_id is not None:
            # librdkafka refuses a message time-out beyond the transaction's.
            configuration["message.timeout.ms"] = wanted.transaction_timeout_ms
        return _Producer(configuration)

    def new_consumer(self, bootstrap: str, wanted: Consuming) -> Consumer:
        """Make a consumer; without a group it still needs a name, which it never uses."""
        return _Consumer(
            {
                **_COMMON,
                "group.id": "never-joined",
                **wanted.settings(),
                "bootstrap.servers": bootstrap,
                "group.protocol": wanted.protocol.value,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": FETCH_MAX_WAIT_MS,
                "fetch.error.backoff.ms": RETRY_BACKOFF_MS,
            }
        )


def _offsets(offsets: Mapping[TopicPartition, int]) -> list[confluent_kafka.TopicPartition]:
    return [confluent_kafka.TopicPartition(*partition, offset) for partition, offset in offsets.items()]


def _record(message: confluent_kafka.Message) -> Record:
    return Record(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        key=message.key(),
        value=message.value(),
        timestamp_ms=message.timestamp()[1],
        headers=tuple(message.headers() or ()),
    )
