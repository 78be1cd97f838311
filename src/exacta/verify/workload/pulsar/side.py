"""Pulsar's side of transactions: one connection that speaks in frames, and is made again where it was lost."""

import socket
from typing import Any
from urllib.parse import urlsplit

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.errors import BrokenFrame
from exacta.protocol.pulsar.message_ids import entry_offset_of
from exacta.protocol.pulsar.session import Outgoing, Session, entry_of_values, error_of
from exacta.verify.workload.clients import CALL_S

_RECEIVED_BYTES = 1 << 16
_CLIENT = "exacta-verify"

_NOT_HERE = pb.ServiceNotReady, pb.TransactionCoordinatorNotFound
"""A broker that follows another one says this: the next broker is asked."""

Place = tuple[str, int]


class Lost(Exception):
    """The connection is gone, or cannot be made. Nobody knows what became of the request."""


class Refused(Exception):
    """The broker has said no; the message has its words."""


def addresses_of(url: str) -> list[tuple[str, int]]:
    """Return hosts and ports of an address such as `pulsar://127.0.0.1:6650`; raises ValueError for any other text.

    Several brokers stand behind each other, with commas between them.
    """
    scheme, _, places = url.partition("://")
    found = []
    for place in places.split(","):
        parts = urlsplit(f"{scheme}://{place}")
        if parts.scheme != "pulsar" or not parts.hostname or parts.port is None or parts.path or parts.query:
            raise ValueError(f"expected pulsar://HOST:PORT, not '{url}'")
        found.append((parts.hostname, parts.port))
    return found


def pulsar_name(place: Place) -> str:
    """Return the name that Pulsar's clients have for a partition of a topic of several."""
    return f"persistent://public/default/{place[0]}-partition-{place[1]}"


class Side:
    """One client; each call waits for its answer, and raises `Lost` or `Refused`."""

    def __init__(self, url: str) -> None:
        self._addresses = addresses_of(url)
        self._session = Session(_CLIENT)
        self._socket: socket.socket | None = None
        self._sequence = 0
        self._producers: dict[Place, int] = {}

    def connect(self) -> None:
        """Connect, if that is not so yet."""
        if self._socket is not None:
            return
        try:
            self._socket = socket.create_connection(self._addresses[0], timeout=CALL_S)
        except OSError as error:
            self._turn_to_the_next()
            raise Lost(str(error)) from error
        self._ask(self._session.connect())

    def close(self) -> None:
        """Give the connection up, with the producers on it."""
        found, self._socket = self._socket, None
        self._producers.clear()
        if found is not None:
            found.close()
            self._turn_to_the_next()

    def _turn_to_the_next(self) -> None:
        self._addresses.append(self._addresses.pop(0))

    def begin(self, timeout_ms: int) -> int:
        """Begin a transaction; return the second number of its TxnID."""
        least: int = self._ask(self._session.begin(timeout_ms)).txnid_least_bits
        return least

    def end(self, transaction: int, *, commit: bool) -> None:
        """Commit or abort."""
        self._ask(self._session.end(transaction, commit=commit))

    def send(self, place: Place, value: str, transaction: int, now_ms: int) -> int | None:
        """Send a message in a transaction; return its offset, or None if it has none before the commit."""
        self.connect()
        number = self._producers.get(place)
        if number is None:
            number = len(self._producers)
            self._ask(self._session.open_producer(pulsar_name(place), number))
            self._producers[place] = number
        self._sequence += 1
        entry = entry_of_values([value.encode()], self._sequence, now_ms, producer=_CLIENT)
        receipt = self._ask(self._session.send(entry, self._sequence, producer_id=number, transaction=transaction))
        offset = entry_offset_of(receipt.message_id)
        return offset if offset >= 0 else None  # a sidecar topic tells a number far below zero

    def _ask(self, asked: Outgoing) -> Any:
        self.connect()
        assert self._socket is not None
        try:
            self._socket.sendall(asked.data)
            while (answer := self._received(self._socket, asked)) is None:
                pass
        except (OSError, BrokenFrame) as error:
            self.close()
            raise Lost(str(error)) from error
        refusal = error_of(answer)
        if refusal in _NOT_HERE:
            self.close()
            raise Lost(f"{pb.ServerError.Name(refusal)}: {answer.message}")
        if refusal is not None:
            raise Refused(f"{pb.ServerError.Name(refusal)}: {answer.message}")
        return answer

    def _received(self, connection: socket.socket, asked: Outgoing) -> Any:
        """Return the answer, or None if it is not among what comes next."""
        data = connection.recv(_RECEIVED_BYTES)
        if not data:
            raise ConnectionError("the connection was closed")
        answer = None
        for each in self._session.receive_data(data):
            if isinstance(each.command, pb.CommandCloseProducer):
                raise ConnectionError("the producer was closed")
            connection.sendall(each.reply)
            answer = each.command if each.key == asked.key else answer
        return answer
