"""Read a range of one partition, with the next fetch already in flight.

This module owns the position and its own connection. It yields what was fetched as it came; `committed.py` says what of
it is visible.
"""

from collections.abc import Generator
from typing import Any, NamedTuple

from exacta.client.connection import Connection
from exacta.client.deadline import Backoff, Deadline, for_one_request
from exacta.client.errors import ClientError, ConnectionLost, ErrorClass, KafkaError
from exacta.client.routing import Client, Leader
from exacta.client.transactions import TopicPartition
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.records import next_offset
from exacta.protocol.kafka.schema import NO_UUID

_LAST_BY_NAME = 12
"""The last version of Fetch that names topics; those after it know them by their ids only."""
_OUTDATED_FOR_MS = 2_000.0
"""A broker hears of a new topic within this time."""


class Fetched(NamedTuple):
    """One reply: whole record batches in offset order, and the aborted transactions that overlap them.

    The next reply overwrites the records.
    """

    records: memoryview
    aborted: list[tuple[int, int]]  # (producer id, first offset)


class OffsetOutOfRange(KafkaError):
    """The partition no longer, or not yet, holds the offset that was asked for."""

    def __init__(self, partition: TopicPartition, offset: int) -> None:
        self.partition = partition
        self.offset = offset
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, f"reading {partition} at {offset}")


class TopicReplaced(ClientError):
    """A topic is not the one that was asked for: it was deleted and created again under the same name (KIP-516)."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        super().__init__(f"topic '{topic}' was deleted and created again")


def send_fetch(connection: Connection, request: FetchRequest, deadline: Deadline) -> None:
    """Send a fetch: by topic ids where it has them and the broker takes them, else by names (KIP-516)."""
    version = connection.version_of(request)
    if any(topic.topic_id == NO_UUID for topic in request.topics):
        version = min(version, _LAST_BY_NAME)
    connection.send(request, deadline, version=version)


def _takes_ids(connection: Connection, request: FetchRequest) -> bool:
    return connection.version_of(request) > _LAST_BY_NAME


def fetch_request(
    positions: dict[TopicPartition, int],
    *,
    isolation_level: int,
    max_wait_ms: int,
    max_bytes: int,
    topic_id: bytes | None = None,
) -> FetchRequest:
    """Return the fetch of several partitions of one leader, without a session (KIP-227).

    `topic_id` is for a fetch of one topic: a broker then refuses if another topic has that name by now.
    """
    topics: dict[str, list[FetchPartition]] = {}
    for (topic, partition), offset in positions.items():
        topics.setdefault(topic, []).append(
            FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
        )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=0,
        session_epoch=-1,
        topics=[
            FetchTopic(topic=topic, topic_id=topic_id or NO_UUID, partitions=entries)
            for topic, entries in topics.items()
        ],
    )


def fetch_range(
    client: Client,
    partition: TopicPartition,
    start: int,
    end: int,
    *,
    isolation_level: int,
    max_bytes: int = 4 * 1024 * 1024,
    timeout_ms: float = 120_000,
    topic_id: bytes | None = None,
) -> Generator[Fetched, None, None]:
    """Yield what a partition holds from offset `start` up to, not including, `end`.

    The first batch may begin before `start` and the last one end behind `end`. Raises `OffsetOutOfRange`, `KafkaError`,
    `TopicReplaced` if the topic's id is no longer `topic_id`, and `DeadlineExceeded` if no progress is made for
    `timeout_ms`.
    """
    reader = _Reader(client, partition, isolation_level, max_bytes, topic_id)
    position = start
    deadline = client.deadline(timeout_ms)
    backoff = Backoff()
    doubtful: Deadline | None = None
    try:
        while position < end:
            try:
                data = reader.fetch(position, deadline)
                _check(client, data, partition, position)
                records = data.records if data.records is not None else memoryview(b"")
                reached = next_offset(records, position)
                if reached == position:
                    # Below the last stable offset there is always more, so only a failover gets here: ask again.
                    nothing = ConnectionLost(f"{partition} holds no {position}")
                    backoff.wait(deadline, nothing)
                    continue
                if reached < end:
                    reader.prefetch(reached, deadline)
            except TopicReplaced as replaced:
                # What we, or the broker that was asked, know of the topic may be older than the id.
                doubtful = doubtful or Deadline(_OUTDATED_FOR_MS)
                if doubtful.passed:
                    raise
                client.forget(Leader(*partition))
                backoff.wait(deadline, replaced)
                continue
            except (ConnectionLost, KafkaError) as error:
                if isinstance(error, KafkaError) and error.error_class is not ErrorClass.RETRIABLE:
                    raise
                reader.close()
                client.forget(Leader(*partition))
                backoff.wait(deadline, error)
                continue
            position = reached
            backoff.reset()
            yield Fetched(
                records, [(entry.producer_id, entry.first_offset) for entry in data.aborted_transactions or ()]
            )
            # The consumer's own time does not count.
            deadline = client.deadline(timeout_ms)
    finally:
        reader.close()


class _Memory:
    """Memory for one reply at a time: new memory for megabytes costs more than to fill it."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def __call__(self, size: int) -> memoryview:
        if size > len(self._bytes):
            self._bytes = bytearray(size + size // 8)  # replies differ a little
        return memoryview(self._bytes)[:size]


class _Reader:
    """One connection to the partition's leader, with at most one fetch in flight."""

    def __init__(
        self,
        client: Client,
        partition: TopicPartition,
        isolation_level: int,
        max_bytes: int,
        topic_id: bytes | None,
    ) -> None:
        self._client = client
        self._partition = partition
        self._isolation_level = isolation_level
        self._max_bytes = max_bytes
        self._topic_id = topic_id
        self._looked_up = False
        self._connection: Connection | None = None
        self._leader = -1  # whose connection that is
        self._memory = _Memory()

    def prefetch(self, position: int, deadline: Deadline) -> None:
        if self._connection is None or self._connection.closed:
            leader = self._client.resolve(Leader(*self._partition), deadline)
            assert leader is not None
            self._check_topic()
            self._connection, self._leader = self._client.lease(leader, deadline), leader
        request = fetch_request(
            {self._partition: position},
            isolation_level=self._isolation_level,
            max_wait_ms=500,
            max_bytes=self._max_bytes,
            topic_id=self._topic_id,
        )
        if self._topic_id is not None and not self._looked_up and not _takes_ids(self._connection, request):
            # A broker that fetches by name does not notice: look at which topic that is now.
            self._client.refresh([self._partition.topic], deadline)
            self._check_topic()
            self._looked_up = True
        send_fetch(self._connection, request, deadline)

    def fetch(self, position: int, deadline: Deadline) -> Any:
        """Return the partition's part of the reply to the fetch in flight, sending one where there is none."""
        if self._connection is None or self._connection.closed or not self._connection.in_flight:
            self.prefetch(position, deadline)
        assert self._connection is not None
        reply = self._connection.receive(for_one_request(deadline), self._memory)
        if reply.error_code != ErrorCode.NONE:
            raise _error(self._client, reply.error_code, self._partition)
        return reply.responses[0].partitions[0]

    def _check_topic(self) -> None:
        found = self._client.topic_id(self._partition.topic)
        if self._topic_id is not None and found is not None and found != self._topic_id:
            raise TopicReplaced(self._partition.topic)

    def close(self) -> None:
        if self._connection is not None:
            self._client.release(self._leader, self._connection)
            self._connection = None


def _check(client: Client, data: Any, partition: TopicPartition, position: int) -> None:
    if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        raise OffsetOutOfRange(partition, position)
    if data.error_code != ErrorCode.NONE:
        raise _error(client, data.error_code, partition)


def _error(client: Client, code: int, partition: TopicPartition) -> KafkaError:
    part = FetchRequest(topics=[FetchTopic(topic=partition.topic)])
    return client.refused(part, code, f"reading {partition}")
