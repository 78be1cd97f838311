"""Pulsar's side of transactions: one connection that speaks in frames, and is made again where it was lost."""

import socket
from typing import Any
from urllib.parse import urlsplit

from google.protobuf.message import Message

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import PROTOCOL_VERSION, unwrapped
from exacta.protocol.pulsar.entries import build_entry
from exacta.protocol.pulsar.errors import BrokenFrame
from exacta.protocol.pulsar.frames import SIZE_BYTES, build_entry_frame, build_frame, frame_at, parse_frame
from exacta.protocol.pulsar.message_ids import entry_offset_of
from exacta.verify.workload.clients import CALL_S

_RECEIVED_BYTES = 1 << 16
_CLIENT = "exacta-verify"

Place = tuple[str, int]


class Lost(Exception):
    """The connection is gone, or cannot be made. Nobody knows what became of the request."""


class Refused(Exception):
    """The broker has said no; the message has its words."""


def address_of(url: str) -> tuple[str, int]:
    """Return host and port of an address such as `pulsar://127.0.0.1:6650`; raises ValueError for any other text."""
    parts = urlsplit(url)
    if parts.scheme != "pulsar" or not parts.hostname or parts.port is None or parts.path or parts.query:
        raise ValueError(f"expected pulsar://HOST:PORT, not '{url}'")
    return parts.hostname, parts.port


def pulsar_name(place: Place) -> str:
    """Return the name that Pulsar's clients have for a partition of a topic of several."""
    return f"persistent://public/default/{place[0]}-partition-{place[1]}"


class Side:
    """One client; each call waits for its answer, and raises `Lost` or `Refused`."""

    def __init__(self, url: str) -> None:
        self._address = address_of(url)
        self._socket: socket.socket | None = None
        self._received = b""
        self._last_request = 0
        self._sequence = 0
        self._producers: dict[Place, int] = {}

    def connect(self) -> None:
        """Connect, if that is not so yet."""
        if self._socket is not None:
            return
        try:
            self._socket = socket.create_connection(self._address, timeout=CALL_S)
        except OSError as error:
            raise Lost(str(error)) from error
        self._write(build_frame(pb.CommandConnect(client_version=_CLIENT, protocol_version=PROTOCOL_VERSION)))
        self._answer(lambda each: isinstance(each, pb.CommandConnected | pb.CommandError))

    def close(self) -> None:
        """Give the connection up, with the producers on it."""
        found, self._socket = self._socket, None
        self._received = b""
        self._producers.clear()
        if found is not None:
            found.close()

    def begin(self, timeout_ms: int) -> int:
        """Begin a transaction; return the second number of its TxnID."""
        least: int = self._ask(pb.CommandNewTxn(txn_ttl_millis=timeout_ms, tc_id=0)).txnid_least_bits
        return least

    def end(self, transaction: int, *, commit: bool) -> None:
        """Commit or abort."""
        action = pb.TxnAction.COMMIT if commit else pb.TxnAction.ABORT
        self._ask(pb.CommandEndTxn(txnid_most_bits=0, txnid_least_bits=transaction, txn_action=action))

    def send(self, place: Place, value: str, transaction: int, now_ms: int) -> int | None:
        """Send a message in a transaction; return its offset, or None if it has none before the commit."""
        self.connect()
        number = self._producers.get(place)
        if number is None:
            number = len(self._producers)
            self._ask(pb.CommandProducer(topic=pulsar_name(place), producer_id=number))
            self._producers[place] = number
        self._sequence += 1
        metadata = pb.MessageMetadata(producer_name=_CLIENT, sequence_id=self._sequence, publish_time=now_ms)
        command = pb.CommandSend(
            producer_id=number,
            sequence_id=self._sequence,
            num_messages=1,
            txnid_most_bits=0,
            txnid_least_bits=transaction,
        )
        entry = build_entry(metadata, value.encode())
        self._write(b"".join(map(bytes, build_entry_frame(command, entry))))
        receipt = self._answer(lambda each: getattr(each, "sequence_id", None) == self._sequence)
        offset = entry_offset_of(receipt.message_id)
        return offset if offset >= 0 else None  # a sidecar topic tells a number far below zero

    def _ask(self, command: Any) -> Any:
        self.connect()
        self._last_request += 1
        command.request_id = wanted = self._last_request
        self._write(build_frame(command))
        return self._answer(lambda each: getattr(each, "request_id", None) == wanted)

    def _answer(self, is_wanted: Any) -> Any:
        while True:
            command = self._next()
            if isinstance(command, pb.CommandPing):
                self._write(build_frame(pb.CommandPong()))
            elif isinstance(command, pb.CommandCloseProducer):
                self.close()
                raise Lost("the producer was closed")
            elif is_wanted(command):
                break
        if isinstance(command, pb.CommandError | pb.CommandSendError) or "error" in _fields(command):
            raise Refused(f"{pb.ServerError.Name(command.error)}: {command.message}")
        return command

    def _write(self, data: bytes) -> None:
        assert self._socket is not None
        try:
            self._socket.sendall(data)
        except OSError as error:
            self.close()
            raise Lost(str(error)) from error

    def _next(self) -> Any:
        assert self._socket is not None
        try:
            while (frame := frame_at(self._received)) is None:
                data = self._socket.recv(_RECEIVED_BYTES)
                if not data:
                    raise ConnectionError("the connection was closed")
                self._received += data
            self._received = self._received[SIZE_BYTES + len(frame) :]
            return unwrapped(parse_frame(bytes(frame)).command)
        except (OSError, BrokenFrame) as error:
            self.close()
            raise Lost(str(error)) from error


def _fields(command: Message) -> set[str]:
    return {field.name for field, _ in command.ListFields()}
