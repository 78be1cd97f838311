"""One command of a client on its way: the request, its connection as handlers see it, and the kind of the command.

Each handler module ends with its `Handler`.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from google.protobuf.message import Message
from msgspec import Struct, field

from exacta.config.configuration import Configuration
from exacta.core.ids import Offset, TransactionId
from exacta.core.values.runs import Run
from exacta.front.broker import Broker
from exacta.front.doors import Door
from exacta.front.meter import ApiMeter
from exacta.front.request import Request, RequestConnection
from exacta.front.turns import Steps
from exacta.ports.log import Answer
from exacta.ports.record_format import Buffer
from exacta.protocol.pulsar.frames import build_frame
from exacta.protocol.pulsar.messages_pb2 import CommandError, CommandSend, MessageIdData, ServerError
from exacta.protocol.pulsar.transaction_ids import TxnId
from exacta.pulsar.at_follower import AtFollower
from exacta.pulsar.consumers import Consumer, Consumers
from exacta.pulsar.errors import AnsweringRequest
from exacta.pulsar.login import Login
from exacta.pulsar.needs import Needs
from exacta.pulsar.producers import Producer
from exacta.pulsar.shared import PulsarShared
from exacta.security.exchange import LoggedIn

logger = logging.getLogger("exacta.pulsar")


C = TypeVar("C", bound=Message)


class PulsarConnection(RequestConnection, Protocol):
    """The connection of a request, as the request and the handlers see it."""

    configuration: Configuration
    shared: PulsarShared
    door: Door
    client_version: str
    """The client's software by its own name; empty: it has not sent CONNECT."""
    producers: dict[int, Producer]
    """The producers that are open, by the client's numbers."""
    consumers: Consumers
    """The consumers that are open."""
    login: Login | None
    """The login of the connection, begun or ended; None: nobody logs in by its door."""
    closed_producers: set[int]
    """The numbers of producers that were closed from this side, to which sends may still be under way."""

    @property
    def engine_has_failed(self) -> bool:
        """Return True if the process is about to end, so that nothing in memory may be relied on."""

    @property
    def has_ended(self) -> bool:
        """Return True if nothing may be opened on the connection any more."""

    def let_in(self, logged_in: LoggedIn, expires_in_s: float | None) -> None:
        """Serve the client, which has logged in, on behalf of its principal, at most for this time."""

    def close(self) -> None:
        """Close the connection once everything that is ready has been sent."""

    def answered(self, request: "PulsarRequest", answer: Sequence[Buffer]) -> None:
        """Send the answer to a request; no bytes if it wants none."""

    def has_begun(self, transaction_id: TransactionId) -> None:
        """Note that a transaction was begun over the connection."""

    def gather(self, request: "PulsarRequest", producer: Producer, command: CommandSend) -> None:
        """Let a SEND be appended with the others that come in this turn of the loop."""

    def acknowledge(self, ack: "Ack") -> None:
        """Let an ACK be decided with the others that come in this turn of the loop."""

    def work(
        self, steps: Steps, failed: Callable[[], None], abandoned: Callable[[], None], what: Callable[[], str]
    ) -> None:
        """Do work in steps; no further command begins until it has ended, or is abandoned with the connection."""

    def push(self, buffers: Sequence[Buffer]) -> None:
        """Send what answers no frame."""


class PulsarRequest(AnsweringRequest):
    """A command that has been read and not answered yet; `entry` is what came behind it."""

    __slots__ = ("__weakref__", "begun_s", "command", "entry", "handler", "is_answered", "meter", "size", "type")

    connection: PulsarConnection

    def __init__(
        self,
        connection: PulsarConnection,
        handler: "Handler[Any] | None",
        type: int,
        command: Message,
        entry: memoryview | None,
        size: int,
    ) -> None:
        self.connection = connection
        self.handler = handler
        self.type = type
        """The command's number."""
        self.command = command
        self.entry = entry
        self.size = size
        """The bytes of its frame, with the size field."""
        self.is_answered = False
        self.meter: ApiMeter | None = None
        """Counts the command once it is answered, with the time from `begun_s` by the meter's clock; None: nothing."""
        self.begun_s = 0.0

    @property
    def shared(self) -> PulsarShared:
        """The parts that all connections of the front share."""
        return self.connection.shared

    def open_consumer(self, number: int) -> Consumer | None:
        """Return the consumer that the command names. None: it is not open, and the command is refused so."""
        consumer = self.connection.consumers.get(number)
        if consumer is None:  # it may have been closed from this side: what it had is delivered again
            self.refuse(ServerError.ConsumerNotFound, f"consumer {number} is not open")
        return consumer

    def reply(self, message: Message) -> None:
        """Answer with a command."""
        self.end([build_frame(message)])

    def end(self, answer: Sequence[Buffer] = ()) -> None:
        """Answer with bytes, or with nothing where the client waits for none. A second answer is dropped."""
        if not self.is_answered:
            self.is_answered = True
            self.connection.answered(self, answer)

    def in_steps(self, steps: Steps) -> None:
        """Carry the command out in steps."""
        self.connection.work(steps, self.fail, self.end, self.described)

    def described(self) -> str:
        """Return what the command is, and who sent it."""
        return f"{type(self.command).__name__} from {self.connection.peer}"

    def refuse(self, error: ServerError, text: str) -> None:
        """Answer with an error."""
        assert self.handler is not None
        answer = self.handler.refused(self.command, error, text)
        if answer is None:
            self.end()
        else:
            self.reply(answer)

    def fail(self) -> None:
        """Report the exception that is being handled; the client connects again, and asks again."""
        if not self.connection.engine_has_failed:
            logger.exception("%s from %s failed", type(self.command).__name__, self.connection.peer)
        self.connection.abort()
        self.end()

    def hang_up(self, reason: str) -> None:
        """Close the connection because of this command."""
        super().hang_up(reason)
        self.end()


class RequestGroup(Request):
    """Some commands of one connection that are decided in one step.

    A bug in what is done for them ends the connection, and `dropped` is called, which ends all of them.
    """

    __slots__ = ("dropped", "requests")

    connection: PulsarConnection

    def __init__(
        self, connection: PulsarConnection, requests: Sequence[PulsarRequest], dropped: Callable[[], None]
    ) -> None:
        self.connection = connection
        self.requests = requests
        self.dropped = dropped

    def fail(self) -> None:
        """Report the exception that is being handled; the client connects again, and asks again."""
        if not self.connection.engine_has_failed:
            name = type(self.requests[0].command).__name__
            logger.exception("%d times %s from %s failed", len(self.requests), name, self.connection.peer)
        self.connection.abort()
        self.dropped()


class Ack(Struct, eq=False, kw_only=True):
    """An ACK of an open consumer: what it says, and the messages that its ids have turned out to name."""

    request: PulsarRequest
    consumer: Consumer
    ids: Sequence[MessageIdData]
    is_cumulative: bool
    request_id: int | None
    """None: its client waits for no answer."""
    txn_id: TxnId | None
    """None: it acknowledges at once."""
    transaction: TransactionId | None
    """The transaction in the core; None: there is none, or `txn_id` is of another coordinator."""
    done: Callable[["Ack", Answer], None]
    """It gets the answer of the core, unless nobody waits for it."""
    runs: list[Run] = field(default_factory=list)
    """Runs that adjoin are one. Two may have messages in common, as the client has sent them."""
    before: Offset = Offset(0)
    """All messages before this offset; 0: there are none."""
    is_whole: bool = True
    """True: all messages are there."""
    unclear: str | None = None
    """The reason why a provisional id names nothing, or nothing yet."""
    is_too_much: bool = False

    @property
    def is_soon(self) -> bool:
        """Return whether nobody waits for what becomes of it."""
        return self.request_id is None and self.txn_id is None

    def joins(self, other: "Ack") -> bool:
        """Return whether this may be decided together with another one, which came before it."""
        same = self.consumer is other.consumer and self.transaction == other.transaction
        return same and not self.before and not other.before


# --- the kind of a command ----------------------------------------------------------------------------------------


class Asking(Protocol):
    """A command whose client waits for the answer to this request."""

    request_id: int


def plain_error(command: Asking, error: ServerError, text: str) -> Message:
    """Refuse a request that has no answer of its own for that."""
    return CommandError(request_id=command.request_id, error=error, message=text)


def no_answer(command: Message, error: ServerError, text: str) -> None:
    """Leave a command without an answer: it has no request id by which its client would know that it is refused."""


class Handler(Struct, Generic[C], frozen=True, kw_only=True):
    """One command as it is served here; `C` is its class."""

    type: int
    """The command's number in BaseCommand."""
    needs: Needs[C]
    """The operations on resources that the command needs of its client."""
    at_follower: AtFollower
    """The treatment of the command at a broker that does not lead the log."""
    handle: Callable[[Broker, C, PulsarRequest], None]
    refused: Callable[[C, ServerError, str], Message | None]
    """A function that makes the answer which refuses the command with an error and a text; None: no answer."""
