"""aiokafka: asyncio, the oldest request versions of the three (InitProducerId, EndTxn and TxnOffsetCommit version 0).

The scenarios are synchronous, so each client runs its library on an event loop in a thread of its own.
"""

import asyncio
import contextlib
import threading
from collections.abc import Collection, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

import aiokafka
import aiokafka.errors

from tests.conformance.clients.interface import (
    CALL_TIMEOUT_S,
    FETCH_MAX_WAIT_MS,
    RETRY_BACKOFF_MS,
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

T = TypeVar("T")
CLOSE_TIMEOUT_S = 2.0
_FENCED = (aiokafka.errors.ProducerFenced, aiokafka.errors.InvalidProducerEpoch)


def _translated(error: BaseException) -> ClientError:
    return (FencedError if isinstance(error, _FENCED) else ClientError)(error)


@contextlib.contextmanager
def _translating() -> Iterator[None]:
    try:
        yield
    except (aiokafka.errors.KafkaError, TimeoutError) as error:
        raise _translated(error) from error


class _Loop:
    """Run coroutines on an event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="aiokafka", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T], timeout_s: float = CALL_TIMEOUT_S) -> T:
        """Run to the end, and cancel at the deadline."""
        return asyncio.run_coroutine_threadsafe(asyncio.wait_for(coroutine, timeout_s), self._loop).result()

    def close(self) -> None:
        """Cancel what is left and end the thread."""

        async def cancel_all() -> None:
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(cancel_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Producer:
    """A producer whose background task has ended is finished, and only that task knows why."""

    def __init__(self, loop: _Loop, configuration: dict[str, Any]) -> None:
        self._loop = loop
        self._configuration = configuration
        self._producer: Any = None
        if "transactional_id" not in configuration:
            self._start()

    def _start(self) -> None:
        async def start() -> aiokafka.AIOKafkaProducer:
            producer = aiokafka.AIOKafkaProducer(**self._configuration)
            try:
                await producer.start()
            except BaseException:
                await producer.stop()
                raise
            return producer

        with _translating():
            self._producer = self._loop.run(start())

    @contextlib.contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            with _translating():
                yield
        except (ClientError, AssertionError) as error:
            task = self._producer._sender.sender_task if self._producer is not None else None
            if task is None or not task.done() or task.cancelled() or task.exception() is None:
                raise
            raise _translated(task.exception()) from error

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
        outcome: Future[int] = Future()

        async def send() -> None:
            sent = await self._producer.send(
                topic, value, key=key, partition=partition, headers=list(headers), timestamp_ms=timestamp_ms
            )
            sent.add_done_callback(delivered)

        def delivered(sent: asyncio.Future) -> None:
            if sent.cancelled():
                outcome.set_exception(ClientError("cancelled"))
            elif (error := sent.exception()) is not None:
                outcome.set_exception(_translated(error))
            else:
                outcome.set_result(sent.result().offset)

        with self._translating():
            self._loop.run(send())
        return outcome

    def flush(self) -> None:
        with self._translating():
            self._loop.run(self._producer.flush())

    def init_transactions(self) -> None:
        # To start a transactional producer is to take the transactional id over: the library has no separate call.
        self._start()

    def begin(self) -> None:
        with self._translating():
            self._loop.run(self._producer.begin_transaction())

    def send_offsets(self, offsets: Mapping[TopicPartition, int], group: object) -> None:
        with self._translating():
            self._loop.run(self._producer.send_offsets_to_transaction(_offsets(offsets), group))

    def commit(self) -> None:
        with self._translating():
            self._loop.run(self._producer.commit_transaction())

    def abort(self) -> None:
        with self._translating():
            self._loop.run(self._producer.abort_transaction())

    def close(self) -> None:
        if self._producer is not None:
            with contextlib.suppress(aiokafka.errors.KafkaError, TimeoutError):
                self._loop.run(self._producer.stop(), CLOSE_TIMEOUT_S)
            self._producer = None


@translated_by(_translating)
class _Consumer:
    def __init__(self, loop: _Loop, configuration: dict[str, Any]) -> None:
        self._group_id = configuration.get("group_id")
        self._loop = loop

        async def start() -> aiokafka.AIOKafkaConsumer:
            consumer = aiokafka.AIOKafkaConsumer(**configuration)
            await consumer.start()
            return consumer

        with _translating():
            self._consumer: Any = loop.run(start())

    def subscribe(self, topics: Collection[str]) -> None:
        self._on_loop(lambda: self._consumer.subscribe(list(topics)))

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        def assign() -> None:
            self._consumer.assign([aiokafka.TopicPartition(*partition) for partition in offsets])
            for partition, offset in offsets.items():
                self._consumer.seek(aiokafka.TopicPartition(*partition), offset)

        self._on_loop(assign)

    def poll(self, timeout_s: float) -> list[Record]:
        found = self._loop.run(self._consumer.getmany(timeout_ms=int(timeout_s * 1000)))
        return [record_of(record) for records in found.values() for record in records]

    def group_metadata(self) -> object:
        return self._group_id

    def assignment(self) -> set[TopicPartition]:
        return {TopicPartition(*partition) for partition in self._consumer.assignment()}

    def position(self, partition: TopicPartition) -> int:
        return self._loop.run(self._consumer.position(aiokafka.TopicPartition(*partition)))

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._loop.run(self._consumer.commit(_offsets(offsets)))

    def committed(self, partition: TopicPartition, timeout_s: float = CALL_TIMEOUT_S) -> int | None:
        return self._loop.run(self._consumer.committed(aiokafka.TopicPartition(*partition)), timeout_s)

    def close(self) -> None:
        if self._consumer is not None:
            # A fetch that was under way when its connection broke makes stop() raise a CancelledError.
            with contextlib.suppress(aiokafka.errors.KafkaError, TimeoutError, CancelledError):
                self._loop.run(self._consumer.stop(), CLOSE_TIMEOUT_S)
            self._consumer = None

    def _on_loop(self, function: Any) -> None:
        async def call() -> None:
            function()

        self._loop.run(call())


class AiokafkaClient(Client):
    """Adapt aiokafka."""

    name = "aiokafka"
    logger = "aiokafka"
    compressions = ("gzip", "snappy", "lz4", "zstd")
    sends_group_metadata = False
    registers_by_writing = False
    waits_for_stable_offsets = False
    speaks_consumer_protocol = False
    joins_again_when_fenced = True

    def __init__(self) -> None:
        """Start the event loop."""
        super().__init__()
        self._loop = _Loop()

    def new_producer(self, bootstrap: str, wanted: Producing) -> Producer:
        """Make a producer."""
        configuration = underscored(wanted.settings())
        if "batch_size" in configuration:
            configuration["max_batch_size"] = configuration.pop("batch_size")
        common = {"bootstrap_servers": bootstrap, "enable_idempotence": True, "retry_backoff_ms": RETRY_BACKOFF_MS}
        return _Producer(self._loop, configuration | common)

    def new_consumer(self, bootstrap: str, wanted: Consuming) -> Consumer:
        """Make a consumer."""
        configuration = {
            **underscored(wanted.settings()),
            "bootstrap_servers": bootstrap,
            "fetch_max_wait_ms": FETCH_MAX_WAIT_MS,
            "retry_backoff_ms": RETRY_BACKOFF_MS,
        }
        return _Consumer(self._loop, configuration)

    def close(self) -> None:
        """Close what is open and end the event loop."""
        super().close()
        self._loop.close()


def _offsets(offsets: Mapping[TopicPartition, int]) -> dict[aiokafka.TopicPartition, int]:
    return {aiokafka.TopicPartition(*partition): offset for partition, offset in offsets.items()}
