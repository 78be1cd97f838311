"""Both sides of a joint transaction: librdkafka's transactional producer, and Pulsar's side in frames."""

from collections import deque
from typing import Any

from confluent_kafka import KafkaException, Producer

import exacta
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.entries import parse_entry
from tests.one_log.clients import SECONDS, kafka_records, pulsar_messages
from tests.pulsar.wire import Wire

COMMIT, ABORT = pb.TxnAction.COMMIT, pb.TxnAction.ABORT


class Side(Wire):
    """Pulsar's side: a connection whose answers and messages are told apart."""

    def __init__(self, url: str) -> None:
        self.pushed: deque[tuple[Any, bytes]] = deque()
        """Message ids and values."""
        super().__init__(url)

    def receive(self) -> Any:
        """Return the next command that is no message."""
        while True:
            command = self._next()
            if not isinstance(command, pb.CommandMessage):
                return command

    def message(self) -> tuple[Any, bytes]:
        """Return the next message."""
        while not self.pushed:
            command = self._next()
            assert isinstance(command, pb.CommandMessage), command
        return self.pushed.popleft()

    def _next(self) -> Any:
        received = self.receive_next()
        if received.entry is not None:
            self.pushed.append((received.command.message_id, bytes(parse_entry(received.entry).payload)))
        return received.command

    def read(self, topic: str, permits: int = 1_000) -> None:
        """Open a consumer from the first message on."""
        answer = self.subscribe(topic)
        if isinstance(answer, pb.CommandError):
            raise ConnectionError(answer.message)
        self.permit(permits)


def kafka_producer(bootstrap: str, transactional_id: str = "x") -> Producer:
    """Return an initialised transactional producer."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "log_level": 0})
    producer.init_transactions(SECONDS)
    return producer


def write(producer: Producer, topic: str, value: bytes) -> None:
    """Write one record, and wait until it is there; raise KafkaException where it is refused."""
    failed: list[Any] = []
    producer.produce(topic, value, partition=0, on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(SECONDS) == 0
    if failed:
        raise KafkaException(failed[0])


def committed_of_kafka(bootstrap: str, topic: str) -> list[bytes]:
    """Return the values that a reader of committed records gets, up to the present end."""
    return [each.value() for each in kafka_records(bootstrap, topic)]


def committed_of_pulsar(url: str, topic: str) -> list[bytes]:
    """Return the values that Pulsar's own reader gets, up to the present end."""
    return [each.data() for each in pulsar_messages(url, topic)]


def join(bootstrap: str, transaction: int | None = None, transactional_id: str = "x") -> int:
    """Make a joint transaction of the one that the producer, or Pulsar's side, has open; return its id."""
    named = None if transaction is None else (0, transaction)
    coordinator, transaction_id = exacta.join_transaction(bootstrap, transactional_id, named)
    assert coordinator == 0
    return transaction_id
