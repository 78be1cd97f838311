"""kafka-python: pure Python, threads, the newest request versions of the three (flexible versions included)."""

import contextlib
import time
import warnings
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future

with warnings.catch_warnings():
    # The library reads its schemas through a deprecated function of importlib while it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    import kafka.errors
    from kafka.structs import OffsetAndMetadata

from tests.conformance.clients.interface import (
    CALL_TIMEOUT_S,
    FETCH_MAX_WAIT_MS,
    RETRY_BACKOFF_MS,
    AbortRequiredError,
    Client,
    ClientError,
    Consumer,
    Consuming,
    FencedError,
    Producer,
    Producing,
    Record,
    TopicPartition,
    record_of,
    translated_by,
    underscored,
)

_COMMON = {
    "reconnect_backoff_ms": 20,
    "reconnect_backoff_max_ms": 200,
    "retry_backoff_ms": RETRY_BACKOFF_MS,
    "metrics_enabled": False,
}
_FENCED = (kafka.errors.ProducerFencedError, kafka.errors.InvalidProducerEpochError)
CLOSE_TIMEOUT_S = 1.0
JOIN_S = 1.0
JOIN_PATIENCE_S = 5.0


def _translated(error: BaseException) -> ClientError:
    # The library wraps what ended the transaction into a bare KafkaError, as an argument or as its cause; where its
    # sender has heard of it before the next call, only the text names it.
    causes = (error, error.__cause__, *error.args)
    if any(isinstance(cause, _FENCED) for cause in causes) or any(each.__name__ in str(error) for each in _FENCED):
        return FencedError(error)
    if any(isinstance(cause, kafka.errors.CommitFailedError) for cause in causes):
        return AbortRequiredError(error)
    return ClientError(error)


@contextlib.contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except kafka.errors.KafkaError as error:
        raise _translated(error) from error


@translated_by(_translating)
class _Producer:
    def __init__(self, configuration: dict[str, object]) -> None:
        self._producer = kafka.KafkaProducer(**configuration)

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
        sent = self._producer.send(
            topic, value, key=key, headers=list(headers), partition=partition, timestamp_ms=timestamp_ms
        )
        sent.add_callback(lambda metadata: future.set_result(metadata.offset))
        sent.add_errback(lambda error: future.set_exception(_translated(error)))
        return future

    def flush(self) -> None:
        self._producer.flush(CALL_TIMEOUT_S)

    def init_transactions(self) -> None:
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send_offsets(self, offsets: Mapping[TopicPartition, int], group: object) -> None:
        self._producer.send_offsets_to_transaction(_offsets(offsets), group)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        with contextlib.suppress(kafka.errors.KafkaError):
            self._producer.close(CLOSE_TIMEOUT_S)


@translated_by(_translating)
class _Consumer:
    def __init__(self, configuration: dict[str, object]) -> None:
        self._consumer = kafka.KafkaConsumer(**configuration)

    def subscribe(self, topics: Collection[str]) -> None:
        self._consumer.subscribe(list(topics))

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._consumer.assign([kafka.TopicPartition(*partition) for partition in offsets])
        for partition, offset in offsets.items():
            self._consumer.seek(kafka.TopicPartition(*partition), offset)

    def poll(self, timeout_s: float) -> list[Record]:
        # A group that it joins while nobody polls, kafka-python 3.0.12 forgets (`join_group_async`): so poll longer.
        waits_s = timeout_s if self._consumer.assignment() or not self._consumer.subscription() else JOIN_S
        deadline = time.monotonic() + JOIN_PATIENCE_S
        found = self._consumer.poll(timeout_ms=waits_s * 1000)
        while not found and self._is_joining() and time.monotonic() < deadline:
            found = self._consumer.poll(timeout_ms=JOIN_S * 1000)
        return [record_of(record) for records in found.values() for record in records]

    def _is_joining(self) -> bool:
        joining = getattr(self._consumer._coordinator, "_join_task", None)
        return joining is not None and not joining.is_done

    def assignment(self) -> set[TopicPartition]:
        return {TopicPartition(*partition) for partition in self._consumer.assignment()}

    def position(self, partition: TopicPartition) -> int:
        return self._consumer.position(kafka.TopicPartition(*partition))

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._consumer.commit(_offsets(offsets), timeout_ms=CALL_TIMEOUT_S * 1000)

    def committed(self, partition: TopicPartition, timeout_s: float = CALL_TIMEOUT_S) -> int | None:
        return self._consumer.committed(kafka.TopicPartition(*partition), timeout_ms=timeout_s * 1000)

    def group_metadata(self) -> object:
        return self._consumer.group_metadata()

    def close(self) -> None:
        with contextlib.suppress(kafka.errors.KafkaError):
            self._consumer.close(autocommit=False, timeout_ms=CLOSE_TIMEOUT_S * 1000)


class KafkaPythonClient(Client):
    """Adapt kafka-python."""

    name = "kafka-python"
    logger = "kafka"
    compressions = ("gzip",)
    sends_group_metadata = True
    registers_by_writing = False
    waits_for_stable_offsets = True
    speaks_consumer_protocol = False
    joins_again_when_fenced = False

    def new_producer(self, bootstrap: str, wanted: Producing) -> Producer:
        """Make a producer."""
        configuration = {**_COMMON, "bootstrap_servers": bootstrap, "max_block_ms": CALL_TIMEOUT_S * 1000}
        with _translating():
            return _Producer(configuration | underscored(wanted.settings()))

    def new_consumer(self, bootstrap: str, wanted: Consuming) -> Consumer:
        """Make a consumer."""
        return _Consumer(
            {
                **_COMMON,
                **underscored(wanted.settings()),
                "bootstrap_servers": bootstrap,
                "fetch_max_wait_ms": FETCH_MAX_WAIT_MS,
                # Well below the time of a poll: one that ends in a rejoin while it backs off can spin for ever after.
                "retry_backoff_ms": 20,
            }
        )


def _offsets(offsets: Mapping[TopicPartition, int]) -> dict[object, object]:
    return {
        kafka.TopicPartition(*partition): OffsetAndMetadata(offset, "", -1) for partition, offset in offsets.items()
    }
