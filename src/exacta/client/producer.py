"""An idempotent producer for one task, with up to five requests in flight per broker.

This module owns the batches that are not yet acknowledged and their order. It writes into the transaction of its
`producer`, if that has a transactional id, and ends none. Another process ends it, by the ids of `producer`. It uses
connections of its own, since its requests stay in flight.

Theory of operation. Records gather in one builder per partition; a full builder becomes a *batch* with its sequence,
which never changes afterwards, so sending it again cannot store it twice (KIP-98). Per partition the batches form a
queue: the head part is in flight, the rest waits. The first batch of a partition travels alone, because a broker may
still be checking that the partition belongs to the transaction, and would refuse it and take the second. A reply
takes batches from the head. After a lost connection or a retriable code, everything of the partition that is in
flight is awaited or given up, then sent again in order, alone first. A leader that cannot be reached holds up its own
partitions only. No success for `delivery_timeout_ms` raises; what the caller does between two calls is not counted.

However many partitions there are, a request carries a few megabytes: a broker hangs up on one that is too large, and
would on each repetition. The partitions take turns. Builders count as memory too; where they take half of what is
allowed, the largest are ended before they are full.

A partition is added to the transaction once and never again, whatever is answered: where the transaction has been
ended behind our back, adding would begin another one without the rows that were acknowledged in the first.
"""

from collections import deque
from itertools import islice

from exacta.client.connection import Connection
from exacta.client.deadline import Backoff, Deadline, for_one_request
from exacta.client.errors import MOVED, ConnectionLost, ErrorClass, classify
from exacta.client.record_batch import BatchBuilder, Records
from exacta.client.routing import Client, Leader
from exacta.client.transactions import Producer, TopicPartition, add_partitions
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData

MOST_IN_FLIGHT = 5
"""A broker remembers the last five batches of a producer and partition; with more in flight a repeat could go
unnoticed."""

MOST_REQUEST_BYTES = 4 * 1024 * 1024
"""The most bytes of record batches in one request, which carries one batch in any case. Brokers take 100 MB
(`socket.request.max.bytes`)."""

_SEQUENCE_MODULUS = 2**31


class _Batch:
    """A record batch with its final bytes."""

    __slots__ = ("on", "records")

    def __init__(self, records: bytes) -> None:
        self.records = records
        self.on: Connection | None = None  # where it is in flight


class _Partition:
    """The queue of one partition."""

    __slots__ = (
        "added",
        "batches",
        "builder",
        "in_flight",
        "name",
        "opened",
        "retrying",
        "sequence",
    )

    def __init__(self, name: TopicPartition) -> None:
        self.name = name
        self.builder: BatchBuilder | None = None
        self.sequence = 0  # of the next builder
        self.batches: deque[_Batch] = deque()  # in order of sequence; the first `in_flight` of them are on their way
        self.in_flight = 0
        self.added = False  # to the transaction
        self.opened = False  # the broker has taken a batch since the last trouble
        self.retrying = False  # something in flight failed: send nothing until all in flight is settled

    @property
    def builder_size(self) -> int:
        """Return the bytes in the builder, before compression."""
        return 0 if self.builder is None else self.builder.size


class IdempotentProducer:
    """A producer that writes records as `producer`, into its transaction if it has a transactional id.

    Raises `KafkaError` for a code that repeating cannot mend, `DeadlineExceeded` when nothing succeeds any more.
    """

    def __init__(
        self,
        client: Client,
        producer: Producer,
        *,
        batch_size_bytes: int = 256 * 1024,
        compression: str = "none",
        delivery_timeout_ms: float = 120_000,
        memory_bytes: int = 32 * 1024 * 1024,
    ) -> None:
        self._client = client
        self._producer = producer
        self._batch_size_bytes = batch_size_bytes
        self._compression = compression
        self._delivery_timeout_ms = delivery_timeout_ms
        self._memory_bytes = memory_bytes
        self._partitions: dict[TopicPartition, _Partition] = {}  # the one that has waited longest for its turn is first
        self._connections: dict[int, Connection] = {}
        self._sent: dict[Connection, deque[list[_Partition]]] = {}  # requests in flight: what each one carries
        self._batch_bytes = 0  # not acknowledged
        self._builder_bytes = 0
        self._backoff = Backoff()
        self._deadline = client.deadline(delivery_timeout_ms)

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """Return the partitions that records were appended to."""
        return frozenset(self._partitions)

    def extend(self, partition: TopicPartition, timestamp_ms: int, records: Records) -> bool:
        """Add records until their batch is full, and then send it; return whether all were added.

        If the memory is used up, other batches are sent, which may block.
        """
        if not records.left:
            return True
        queue = self._partitions.get(partition)
        if queue is None:
            queue = self._partitions[partition] = _Partition(partition)
        if queue.builder is None:
            queue.builder = BatchBuilder(
                self._producer, queue.sequence, compression=self._compression, most_bytes=self._batch_size_bytes
            )
            self._builder_bytes += queue.builder.size
        before = queue.builder.size
        queue.builder.add(records, timestamp_ms)
        self._builder_bytes += queue.builder.size - before
        if records.left:
            self._end_batch(queue)
            self._pump(most_held_bytes=self._memory_bytes)
            return False
        if self._builder_bytes > self._memory_bytes // 2:
            self._end_largest_batches()
            self._pump(most_held_bytes=self._memory_bytes)
        return True

    def flush(self, *, timeout_ms: float | None = None) -> None:
        """Send everything and wait until the brokers have taken it; with a time-out, while they take some of it."""
        if timeout_ms is not None:
            self._delivery_timeout_ms = timeout_ms
        for queue in self._partitions.values():
            self._end_batch(queue)
        self._pump(most_held_bytes=0)

    def close(self) -> None:
        """Give the connections back; what is not acknowledged is given up."""
        for leader, connection in self._connections.items():
            self._client.release(leader, connection)
        self._connections.clear()
        self._sent.clear()

    def _end_batch(self, queue: _Partition) -> None:
        if queue.builder is None:
            return
        batch = _Batch(queue.builder.build())
        queue.batches.append(batch)
        self._batch_bytes += len(batch.records)
        self._builder_bytes -= queue.builder.size
        queue.sequence = (queue.sequence + queue.builder.count) % _SEQUENCE_MODULUS
        queue.builder = None

    def _end_largest_batches(self) -> None:
        """End the largest builders, until the others take a quarter of the memory: so it is not soon done again."""
        for queue in sorted(self._partitions.values(), key=lambda each: each.builder_size, reverse=True):
            if self._builder_bytes <= self._memory_bytes // 4:
                break
            self._end_batch(queue)

    @property
    def _held_bytes(self) -> int:
        return self._batch_bytes + self._builder_bytes

    def _pump(self, *, most_held_bytes: int) -> None:
        """Send what may be sent; wait for replies while more than `most_held_bytes` are unacknowledged."""
        self._deadline = self._client.deadline(self._delivery_timeout_ms)
        while True:
            try:
                self._add_partitions()
                while self._send_round():
                    pass
                # A reply is only waited for above the limit: an append should not stand still.
                if self._held_bytes <= most_held_bytes:
                    return
                waiting = self._busiest_connection()
                if waiting is not None:
                    self._receive(waiting)
                else:
                    # All are between two attempts: their leaders are being looked up again.
                    self._backoff.wait(self._deadline, ConnectionLost("no leader to send to"))
            except ConnectionLost as lost:
                self._give_up_closed()
                self._backoff.wait(self._deadline, lost)

    def _add_partitions(self) -> None:
        """Add the partitions that have a batch to send, and those that will have one, to the transaction."""
        if all(queue.added or not queue.batches for queue in self._partitions.values()):
            return
        new = [queue for queue in self._partitions.values() if not queue.added]
        if self._producer.is_transactional:
            add_partitions(self._client, self._producer, [queue.name for queue in new], self._deadline)
        for queue in new:
            queue.added = True

    def _send_round(self) -> bool:
        """Send at most one request to each leader, of one batch from each partition that may send.

        Returns whether another round may send more. That is not so if a leader was lost, so that replies do not wait
        for it. Raises the last `ConnectionLost` if nothing was sent and nothing is on its way.
        """
        sent = False
        lost: ConnectionLost | None = None
        for leader, queues in self._ready_by_leader().items():
            try:
                connection = self._connection(leader)
                # A partition whose leader moved must not overtake what is still in flight to the old one.
                ready = [queue for queue in queues if self._alone_on(queue, connection)]
                if ready and connection.in_flight < MOST_IN_FLIGHT and not connection.wants_rest:
                    self._send(connection, self._first_that_fit(ready))
                    sent = True
            except ConnectionLost as failure:
                lost = failure
                self._give_up_closed()
                for queue in queues:
                    self._client.forget(Leader(*queue.name))
        if lost is not None and not sent and self._busiest_connection() is None:
            raise lost
        return sent and lost is None

    def _ready_by_leader(self) -> dict[int, list[_Partition]]:
        """Return the partitions that may send a batch, by their leader, which may have moved."""
        by_leader: dict[int, list[_Partition]] = {}
        for queue in self._partitions.values():
            if len(queue.batches) > queue.in_flight and not queue.retrying and (queue.opened or not queue.in_flight):
                leader = self._client.resolve(Leader(*queue.name), self._deadline)
                assert leader is not None
                by_leader.setdefault(leader, []).append(queue)
        return by_leader

    @staticmethod
    def _alone_on(queue: _Partition, connection: Connection) -> bool:
        return all(batch.on is connection for batch in islice(queue.batches, queue.in_flight))

    @staticmethod
    def _first_that_fit(queues: list[_Partition]) -> list[_Partition]:
        """Return the first of `queues`, at least one, whose next batches fit into one request."""
        size = 0
        for index, queue in enumerate(queues):
            size += len(queue.batches[queue.in_flight].records)
            if size > MOST_REQUEST_BYTES and index > 0:
                return queues[:index]
        return queues

    def _send(self, connection: Connection, queues: list[_Partition]) -> None:
        topics: dict[str, list[PartitionProduceData]] = {}
        for queue in queues:
            batch = queue.batches[queue.in_flight]
            data = PartitionProduceData(index=queue.name.partition, records=batch.records)
            topics.setdefault(queue.name.topic, []).append(data)
        request = ProduceRequest(
            transactional_id=self._producer.transactional_id or None,
            acks=-1,
            timeout_ms=self._client.cluster.request_timeout_ms,
            topic_data=[TopicProduceData(name=topic, partition_data=data) for topic, data in topics.items()],
        )
        connection.send(request, self._request_deadline())
        for queue in queues:
            queue.batches[queue.in_flight].on = connection
            queue.in_flight += 1
            self._partitions[queue.name] = self._partitions.pop(queue.name)
        self._sent[connection].append(queues)

    def _receive(self, connection: Connection) -> None:
        """Read one reply and settle what it answers."""
        reply = connection.receive(self._request_deadline())
        queues = self._sent[connection].popleft()
        answers = {
            TopicPartition(topic.name, entry.index): (entry.error_code, entry.error_message)
            for topic in reply.responses
            for entry in topic.partition_responses
        }
        for queue in queues:
            self._settle(queue, connection, *answers.get(queue.name, (ErrorCode.UNKNOWN_SERVER_ERROR, None)))

    def _settle(self, queue: _Partition, connection: Connection, code: int, message: str | None) -> None:
        """Apply the answer to the oldest batch of `queue` that is in flight on `connection`."""
        index = next(i for i, batch in enumerate(queue.batches) if batch.on is connection)
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._batch_bytes -= len(queue.batches[index].records)
            del queue.batches[index]
            queue.in_flight -= 1
            queue.opened = True
            self._backoff.reset()
            self._deadline = self._client.deadline(self._delivery_timeout_ms)
            if queue.retrying:
                self._rewind_when_settled(queue)
            return
        followed_a_failure = queue.retrying
        queue.retrying = True
        queue.opened = False
        queue.batches[index].on = None
        part = ProduceRequest(
            transactional_id=self._producer.transactional_id, topic_data=[TopicProduceData(name=queue.name.topic)]
        )
        error = self._client.refused(part, code, f"writing to {queue.name}", message)
        if not followed_a_failure and classify(code) is not ErrorClass.RETRIABLE:
            raise error
        if code in MOVED:
            self._client.forget(Leader(*queue.name))
        self._rewind_when_settled(queue)
        self._backoff.wait(self._deadline, error)

    @staticmethod
    def _rewind_when_settled(queue: _Partition) -> None:
        """Make everything wait again, in order, once nothing of it is in flight."""
        if all(batch.on is None for batch in queue.batches):
            queue.in_flight = 0
            queue.retrying = False

    def _connection(self, leader: int) -> Connection:
        connection = self._connections.get(leader)
        if connection is None or connection.closed:
            connection = self._client.lease(leader, self._request_deadline())
            self._connections[leader] = connection
            self._sent[connection] = deque()
        return connection

    def _busiest_connection(self) -> Connection | None:
        """Return the connection with the most requests in flight, or None where nothing is."""
        busiest = max(self._connections.values(), key=lambda each: each.in_flight, default=None)
        return busiest if busiest is not None and busiest.in_flight else None

    def _give_up_closed(self) -> None:
        """Take back what was in flight on connections that are closed now: whether it was stored is unknown."""
        for leader, connection in list(self._connections.items()):
            if not connection.closed:
                continue
            del self._connections[leader]
            for queues in self._sent.pop(connection):
                for queue in queues:
                    self._take_back(queue, connection)
        # Whatever was sent, a leader that cannot be reached may be one no longer.
        for queue in self._partitions.values():
            if queue.batches and not queue.in_flight:
                self._client.forget(Leader(*queue.name))

    def _take_back(self, queue: _Partition, connection: Connection) -> None:
        for batch in queue.batches:
            if batch.on is connection:
                batch.on = None
        queue.retrying = True
        queue.opened = False
        self._rewind_when_settled(queue)

    def _request_deadline(self) -> Deadline:
        return for_one_request(self._deadline)
