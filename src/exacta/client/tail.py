"""Read several partitions from their positions on, and wait for more where they end, as `tail -f` does.

This module owns the positions and one connection to each leader. What a fetch holds becomes records here; what a reader
of committed records sees of it is told by `exacta.protocol.kafka.committed`. `fetcher.py` reads one partition up to an
offset, faster.

Theory of operation. A turn sends one fetch to each leader, of all the partitions that it leads, and takes the answers.
A broker answers at once where there is a record, and else after a moment, so that a turn is short and the reader hears
of an interrupt. After a lost connection or a retriable code the leaders are looked up again. A turn in which nobody can
be reached until the deadline raises.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from exacta.client.connection import Connection
from exacta.client.deadline import Backoff, for_one_request
from exacta.client.errors import ClientError, ConnectionLost, ErrorClass, KafkaError
from exacta.client.fetcher import OffsetOutOfRange, fetch_request, send_fetch
from exacta.client.routing import Client, Leader
from exacta.client.topics import READ_COMMITTED
from exacta.client.transactions import TopicPartition
from exacta.protocol.kafka.committed import visible_batches
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k01_fetch import FetchRequest, FetchTopic
from exacta.protocol.kafka.record_reading import read_records
from exacta.protocol.kafka.records import BatchHeader, CorruptBatch, next_offset, opened

MAX_BYTES = 4 * 1024 * 1024
"""A fetch is to carry about this much. One batch comes in any case."""

_MAX_WAIT_MS = 500
_MAX_WAIT_BESIDE_OTHERS_MS = 100
"""A broker with no new record may hold up the answers of the others for this time."""

_MOST_BATCH_BYTES = 1 << 30
_MOST_HEADERS = 1 << 20
"""The bounds of one batch, decompressed: what is more is no batch but an attack."""


class UnreadableBatch(ClientError):
    """A batch of the log cannot be read. The message is one sentence."""


class ReceivedRecord(NamedTuple):
    """A record as a reader gets it. `is_append_time`: the timestamp is the broker's, not the producer's."""

    partition: TopicPartition
    offset: int
    timestamp_ms: int
    is_append_time: bool
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]


class Tail:
    """Partitions that are being read. The reader may take some of them out between two turns."""

    def __init__(self, client: Client, positions: Mapping[TopicPartition, int], *, isolation_level: int) -> None:
        self.positions = dict(positions)
        """The offset that comes next, by partition; offsets that hold no record for this reader are passed by."""
        self._client = client
        self._isolation_level = isolation_level
        self._connections: dict[int, Connection] = {}
        self._backoff = Backoff()
        self._deadline = client.deadline()

    def close(self) -> None:
        """Give the connections back."""
        for leader, connection in self._connections.items():
            self._client.release(leader, connection)
        self._connections.clear()

    def turn(self) -> Iterator[ReceivedRecord]:
        """Yield what one fetch from each leader brings, in the order of each partition.

        Raises `OffsetOutOfRange`, `KafkaError`, `UnreadableBatch` and `DeadlineExceeded`.
        """
        asked: list[tuple[int, list[TopicPartition]]] = []
        try:
            by_leader = self._by_leader()
            for leader, partitions in by_leader.items():
                self._send(leader, partitions, alone=len(by_leader) == 1)
                asked.append((leader, partitions))
        except (ConnectionLost, KafkaError) as error:
            self._after(error)
        for leader, partitions in asked:
            try:
                connection = self._connections.get(leader)
                if connection is None:
                    continue  # an error has closed all of them
                reply = connection.receive(for_one_request(self._deadline))
                if reply.error_code != ErrorCode.NONE:
                    raise self._refused(reply.error_code, partitions[0])
            except (ConnectionLost, KafkaError) as error:
                self._after(error)
                continue
            self._backoff.reset()
            self._deadline = self._client.deadline()
            for topic in reply.responses:
                for data in topic.partitions:
                    yield from self._records(TopicPartition(topic.topic, data.partition_index), data)

    def _by_leader(self) -> dict[int, list[TopicPartition]]:
        found: dict[int, list[TopicPartition]] = {}
        for partition in self.positions:
            leader = self._client.resolve(Leader(*partition), self._deadline)
            assert leader is not None
            found.setdefault(leader, []).append(partition)
        return found

    def _send(self, leader: int, partitions: list[TopicPartition], *, alone: bool) -> None:
        connection = self._connections.get(leader)
        if connection is None or connection.closed:
            connection = self._connections[leader] = self._client.lease(leader, for_one_request(self._deadline))
        request = fetch_request(
            {each: self.positions[each] for each in partitions},
            isolation_level=self._isolation_level,
            max_wait_ms=_MAX_WAIT_MS if alone else _MAX_WAIT_BESIDE_OTHERS_MS,
            max_bytes=MAX_BYTES,
        )
        send_fetch(connection, request, for_one_request(self._deadline))

    def _records(self, partition: TopicPartition, data: Any) -> Iterator[ReceivedRecord]:
        position = self.positions[partition]
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise OffsetOutOfRange(partition, position)
        if data.error_code != ErrorCode.NONE:
            self._after(self._refused(data.error_code, partition))
            return
        fetched = data.records if data.records is not None else memoryview(b"")
        aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
        committed_only = self._isolation_level == READ_COMMITTED
        for header, batch in visible_batches(fetched, aborted, committed_only=committed_only):
            for record in received_records(partition, header, batch):
                if record.offset >= position:
                    yield record
        if partition in self.positions:  # the reader may have enough of it
            self.positions[partition] = next_offset(fetched, position)

    def _refused(self, code: int, partition: TopicPartition) -> KafkaError:
        part = FetchRequest(topics=[FetchTopic(topic=partition.topic)])
        return self._client.refused(part, code, f"reading {partition}")

    def _after(self, error: ConnectionLost | KafkaError) -> None:
        """Begin again after a moment, if time may mend the error; else raise it."""
        if isinstance(error, KafkaError) and error.error_class is not ErrorClass.RETRIABLE:
            raise error
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        for partition in self.positions:
            self._client.forget(Leader(*partition))
        self._backoff.wait(self._deadline, error)


def received_records(partition: TopicPartition, header: BatchHeader, batch: memoryview) -> Iterator[ReceivedRecord]:
    """Yield the records of a batch. Raises `UnreadableBatch`."""
    try:
        plain = opened(batch, header, _MOST_BATCH_BYTES)
        records = read_records(plain, header.record_count, header.last_offset_delta, _MOST_HEADERS)
    except CorruptBatch as error:
        raise UnreadableBatch(f"{partition}, the batch at offset {header.base_offset}: {error}") from error
    for offset_delta, timestamp_delta, key, value, headers in records:
        timestamp = header.max_timestamp if header.log_append_time else header.base_timestamp + timestamp_delta
        offset = header.base_offset + offset_delta
        yield ReceivedRecord(partition, offset, timestamp, header.log_append_time, key, value, headers)
