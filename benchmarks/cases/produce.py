"""One message at a time: a plain producer that waits for each acknowledgement, and 2,000 connections that all do.

The 2,000 are raw sockets that send one prepared Produce request again and again, each when the answer to the one before
is there: clients of librdkafka in that number would measure librdkafka.
"""

import selectors
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.batches import batch
from benchmarks.clients import TRANSACTION_TIMEOUT_S, DeliveryFailedError, plain_producer
from benchmarks.figures import Figure
from benchmarks.session import Scale, Session
from benchmarks.workers import Gate, Tally
from exacta.protocol.kafka.apis import API
from exacta.protocol.kafka.codec import decode_response, encode_request
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData

MESSAGE = bytes(100)
PRODUCE_VERSION = 9
ANSWER_TIMEOUT_S = 30.0
RECEIVE_BYTES = 65_536


def run(session: Session, case: str) -> Iterator[Figure]:
    """Run one synchronous producer."""
    topic = session.topic("produce")
    figures, (outcome,) = session.measure(case, "msg/s", produce_one_by_one, [{"topic": topic}])
    session.expect_committed(topic, 1, outcome.tally.acknowledged)
    yield from figures


def produce_one_by_one(gate: Gate, *, bootstrap: str, scale: Scale, topic: str) -> Tally:
    """Load: one producer, one message at a time."""
    producer = plain_producer(bootstrap, linger_ms=0)
    errors: list[object] = []

    def delivered(error: object, _: object) -> None:
        if error is not None:
            errors.append(error)

    def run_until(deadline_s: float) -> list[float]:
        latencies_ms: list[float] = []
        started_s = time.perf_counter()
        while started_s < deadline_s:
            producer.produce(topic, MESSAGE, partition=0, on_delivery=delivered)
            if producer.flush(TRANSACTION_TIMEOUT_S) or errors:
                raise DeliveryFailedError(f"a message was not acknowledged: {errors}")
            ended_s = time.perf_counter()
            latencies_ms.append((ended_s - started_s) * 1000)
            started_s = ended_s
        return latencies_ms

    warm_up = len(run_until(time.perf_counter() + scale.warm_up_s))
    with gate.measured():
        latencies_ms = run_until(time.perf_counter() + scale.seconds)
    return Tally(
        operations=len(latencies_ms),
        seconds=scale.seconds,
        latencies_ms=latencies_ms,
        acknowledged=warm_up + len(latencies_ms),
    )


def run_connections(session: Session, case: str, connections: int, processes: int, partitions: int) -> Iterator[Figure]:
    """Run this many connections, spread over this many processes."""
    topic = session.topic("connections", partitions)
    each = {"topic": topic, "connections": connections // processes, "partitions": partitions}
    figures, outcomes = session.measure(case, "msg/s", produce_by_connections, [each] * processes)
    session.expect_committed(topic, partitions, sum(outcome.tally.acknowledged for outcome in outcomes))
    yield from figures


def produce_by_connections(
    gate: Gate, *, bootstrap: str, scale: Scale, topic: str, connections: int, partitions: int
) -> Tally:
    """Load: one request at a time on each of the connections."""
    host, _, port = bootstrap.rpartition(":")
    with selectors.DefaultSelector() as selector:
        peers = [_Peer((host, int(port)), _frame(topic, number % partitions)) for number in range(connections)]
        for peer in peers:
            selector.register(peer.socket, selectors.EVENT_READ, peer)

        def run_for(seconds: float) -> list[float]:
            """Return the latencies of those who were answered in time; of the others the answers are awaited."""
            latencies_ms: list[float] = []
            deadline_s = time.perf_counter() + seconds
            for peer in peers:
                peer.send()
            while time.perf_counter() < deadline_s:
                ready = selector.select(ANSWER_TIMEOUT_S)
                if not ready:
                    raise DeliveryFailedError(f"nobody was answered within {ANSWER_TIMEOUT_S:.0f} s")
                for key, _ in ready:
                    if key.data.receive():
                        latencies_ms.append((time.perf_counter() - key.data.sent_s) * 1000)
                        key.data.send()
            for peer in peers:
                while not peer.receive():
                    pass
            return latencies_ms

        warm_up = len(run_for(scale.warm_up_s)) + connections
        with gate.measured():
            latencies_ms = run_for(scale.seconds)
        for peer in peers:
            selector.unregister(peer.socket)
            peer.socket.close()
    return Tally(
        operations=len(latencies_ms),
        seconds=scale.seconds,
        latencies_ms=latencies_ms,
        acknowledged=warm_up + len(latencies_ms) + connections,
    )


class _Peer:
    """One connection, with one request on its way."""

    def __init__(self, address: tuple[str, int], frame: bytes) -> None:
        self.socket = socket.create_connection(address, ANSWER_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent_s = 0.0
        self._frame = frame
        self._received = b""

    def send(self) -> None:
        """Send the request; it is small, and nothing else is on its way."""
        self._received = b""
        self.sent_s = time.perf_counter()
        self.socket.sendall(self._frame)

    def receive(self) -> bool:
        """Take what has come; return whether the answer is complete. Raises DeliveryFailedError."""
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise DeliveryFailedError("the broker has closed a connection")
        self._received += data
        if len(self._received) < 4 or len(self._received) < 4 + struct.unpack_from(">i", self._received)[0]:
            return False
        answer: Any = decode_response(API[ProduceRequest.SCHEMA.key].response, PRODUCE_VERSION, self._received[4:])[1]
        code = answer.responses[0].partition_responses[0].error_code
        if code:
            raise DeliveryFailedError(f"a message was refused with error {code}")
        return True


def _frame(topic: str, partition: int) -> bytes:
    records = batch(int(time.time() * 1000), size=len(MESSAGE))
    data = [PartitionProduceData(index=partition, records=records)]
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )
    return b"".join(encode_request(request, PRODUCE_VERSION, 1, "benchmark"))
