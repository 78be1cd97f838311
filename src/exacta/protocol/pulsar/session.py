"""A client's side of a connection to a Pulsar broker, without the connection.

Owns the request ids, the frames of what a client sends, and what comes back: it is cut, read, and said to be the answer
to what was sent, or to be no answer. It does not own sockets, time-outs or retries, which are the caller's transport.

A method returns the bytes to send, with the key of the answer. `receive_data` takes bytes as they come, and returns the
commands that are whole. A command without a method of its own goes through `request`, or `tell` if it has no answer. A
method takes the fields that it does not name by their names in `messages.proto`.

    out = session.begin(60_000)
    socket.sendall(out.data)
    for received in session.receive_data(socket.recv(65_536)):
        socket.sendall(received.reply)
        if received.key == out.key:
            return received.command.txnid_least_bits

A session outlives its connections: `connect` begins the next one, and request ids go on, as in Pulsar's own clients.
Commands may be sent behind CONNECT before CONNECTED has come. Transactions are those of the coordinator number 0, so
that the second half of a TxnID names one.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from google.protobuf.message import Message
from msgspec import Struct

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import NO_REQUEST, PROTOCOL_VERSION, unwrapped
from exacta.protocol.pulsar.decoding import Buffer
from exacta.protocol.pulsar.entries import build_batch, build_entry
from exacta.protocol.pulsar.frames import SIZE_BYTES, build_entry_frame, build_frame, frame_at, parse_frame

Key = int | tuple[int, int]
"""A request id; of a SEND the numbers of the producer and of the first message; of CONNECT 0, which is no request's."""

COORDINATOR: Final = 0
"""The number of the transaction coordinator, which is also the first half of each of its TxnIDs."""

_CONNECT_KEY: Final = 0
_PONG: Final = build_frame(pb.CommandPong())


class Outgoing(Struct, frozen=True):
    """Bytes to send. What is answered has a key, by which `Incoming` names it."""

    data: bytes
    key: Key | None = None


class Incoming(Struct, frozen=True):
    """A command that has come.

    `key` says what it answers, None for what comes by itself: messages, and a producer or consumer that the broker
    closes. `entry` is what a MESSAGE brings, `reply` what must be sent at once: nothing, but for a PING.
    """

    command: Any
    key: Key | None = None
    entry: memoryview | None = None
    reply: bytes = b""


class Session:
    """One client of a broker."""

    def __init__(self, client_version: str, protocol_version: int = PROTOCOL_VERSION) -> None:
        self._connect = pb.CommandConnect(client_version=client_version, protocol_version=protocol_version)
        self._last_request = 0
        self._received = b""

    def connect(self) -> Outgoing:
        """Begin a connection; what was left of the one before is forgotten."""
        self._received = b""
        return Outgoing(build_frame(self._connect), _CONNECT_KEY)

    def request(self, command: Any) -> Outgoing:
        """Give a command the next request id."""
        self._last_request += 1
        command.request_id = self._last_request
        return Outgoing(build_frame(command), self._last_request)

    @staticmethod
    def tell(command: Message) -> Outgoing:
        """Send a command that wants no answer, or has a request id that the caller has chosen."""
        return Outgoing(build_frame(command))

    def receive_data(self, data: Buffer) -> list[Incoming]:
        """Return the commands that are whole now. Raises `BrokenFrame`; the connection is of no use then."""
        self._received += data
        found, at = [], 0
        while (frame := frame_at(self._received, at)) is not None:
            parsed = parse_frame(frame)
            command = unwrapped(parsed.command)
            reply = _PONG if isinstance(command, pb.CommandPing) else b""
            found.append(Incoming(command, _key_of(command), parsed.entry, reply))
            at += SIZE_BYTES + len(frame)
        self._received = self._received[at:]
        return found

    # --- producing ----------------------------------------------------------------------------------------------------

    def open_producer(self, topic: str, producer_id: int = 0, name: str = "", **fields: Any) -> Outgoing:
        """Open a producer. One without a name has one made up by the broker."""
        fields.setdefault("user_provided_producer_name", bool(name))
        return self.request(pb.CommandProducer(topic=topic, producer_id=producer_id, producer_name=name, **fields))

    @staticmethod
    def send(
        entry: Buffer,
        sequence_id: int,
        count: int = 1,
        *,
        producer_id: int = 0,
        transaction: int | None = None,
        **fields: Any,
    ) -> Outgoing:
        """Send an entry (`entry_of_values`) of `count` messages, the first of which has this sequence id."""
        command = pb.CommandSend(producer_id=producer_id, sequence_id=sequence_id, num_messages=count, **fields)
        if count > 1:
            command.highest_sequence_id = sequence_id + count - 1
        if transaction is not None:
            command.txnid_most_bits, command.txnid_least_bits = COORDINATOR, transaction
        return Outgoing(b"".join(map(bytes, build_entry_frame(command, entry))), (producer_id, sequence_id))

    # --- consuming ----------------------------------------------------------------------------------------------------

    def subscribe(
        self, topic: str, subscription: str, consumer_id: int, kind: Any = pb.CommandSubscribe.Exclusive, **fields: Any
    ) -> Outgoing:
        """Open a consumer of a subscription, which begins at the first message if it is new."""
        fields.setdefault("initial_position", pb.CommandSubscribe.Earliest)
        return self.request(
            pb.CommandSubscribe(
                topic=topic, subscription=subscription, consumer_id=consumer_id, sub_type=kind, **fields
            )
        )

    def flow(self, consumer_id: int, permits: int = 1_000_000) -> Outgoing:
        """Permit a consumer more messages."""
        return self.tell(pb.CommandFlow(consumer_id=consumer_id, message_permits=permits))

    def acknowledge(
        self,
        consumer_id: int,
        ids: Iterable[pb.MessageIdData],
        *,
        cumulative: bool = False,
        transaction: int | None = None,
        answered: bool = True,
    ) -> Outgoing:
        """Acknowledge these messages, or (`cumulative`) all up to the one that is named."""
        kind = pb.CommandAck.Cumulative if cumulative else pb.CommandAck.Individual
        command = pb.CommandAck(consumer_id=consumer_id, ack_type=kind, message_id=ids)
        if transaction is not None:
            command.txnid_most_bits, command.txnid_least_bits = COORDINATOR, transaction
        return self.request(command) if answered else self.tell(command)

    # --- transactions -------------------------------------------------------------------------------------------------

    def begin(self, timeout_ms: int) -> Outgoing:
        """Begin a transaction; the answer's `txnid_least_bits` name it."""
        return self.request(pb.CommandNewTxn(txn_ttl_millis=timeout_ms, tc_id=COORDINATOR))

    def add_partitions(self, transaction: int, topics: Iterable[str]) -> Outgoing:
        """Register topics that a transaction will write to."""
        return self.request(
            pb.CommandAddPartitionToTxn(txnid_most_bits=COORDINATOR, txnid_least_bits=transaction, partitions=topics)
        )

    def add_subscriptions(self, transaction: int, topic: str, *names: str) -> Outgoing:
        """Register subscriptions of a topic in which a transaction will acknowledge."""
        found = [pb.Subscription(topic=topic, subscription=name) for name in names]
        return self.request(
            pb.CommandAddSubscriptionToTxn(
                txnid_most_bits=COORDINATOR, txnid_least_bits=transaction, subscription=found
            )
        )

    def end(self, transaction: int, *, commit: bool) -> Outgoing:
        """Commit or abort a transaction."""
        action = pb.TxnAction.COMMIT if commit else pb.TxnAction.ABORT
        return self.request(
            pb.CommandEndTxn(txnid_most_bits=COORDINATOR, txnid_least_bits=transaction, txn_action=action)
        )


def entry_of_values(
    values: Sequence[bytes], sequence_id: int, publish_time_ms: int, *, producer: str, **fields: Any
) -> bytes:
    """Build an entry of messages with sequence ids from this one on: a batch where there are several."""
    metadata = pb.MessageMetadata(
        producer_name=producer, sequence_id=sequence_id, publish_time=publish_time_ms, **fields
    )
    if len(values) == 1:
        return build_entry(metadata, values[0])
    metadata.num_messages_in_batch = len(values)
    metadata.highest_sequence_id = sequence_id + len(values) - 1
    messages = ((pb.SingleMessageMetadata(sequence_id=sequence_id + k), value) for k, value in enumerate(values))
    return build_entry(metadata, build_batch(messages))


def error_of(answer: Any) -> "pb.ServerError | None":
    """Return the error that an answer brings, None if it brings none."""
    may_fail = "error" in answer.DESCRIPTOR.fields_by_name
    return answer.error if may_fail and answer.HasField("error") else None


def _key_of(command: Any) -> Key | None:
    match command:
        case pb.CommandConnected():
            return _CONNECT_KEY
        case pb.CommandSendReceipt() | pb.CommandSendError():
            return command.producer_id, command.sequence_id
    key: int | None = getattr(command, "request_id", None)
    if key != NO_REQUEST:
        return key
    return _CONNECT_KEY if isinstance(command, pb.CommandError) else None
