"""One command of a client on its way, and the connection as handlers see it."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from google.protobuf.message import Message
from msgspec import Struct

from exacta.config.configuration import Configuration
from exacta.core.ids import Offset, TransactionId
from exacta.core.state.runs import Run
from exacta.engine.engine import Answer
from exacta.front.doors import Door
from exacta.front.meter import ApiMeter
from exacta.front.request import RequestConnection
from exacta.front.turns import Steps
from exacta.ports.record_format import Buffer
from exacta.protocol.pulsar.frames import build_frame
from exacta.protocol.pulsar.messages_pb2 import CommandSend, ServerError
from exacta.pulsar.answering import AnsweringRequest
from exacta.pulsar.consumers import Consumer, Consumers
from exacta.pulsar.producers import Producer
from exacta.pulsar.shared import PulsarShared

logger = logging.getLogger("exacta.pulsar")


class ServedCommand(Protocol):
    """The kind of a command, as the request sees it."""

    @property
    def refused(self) -> Callable[[Any, ServerError, str], Message | None]:
        """The function that makes the answer which refuses the command; None where its client waits for none.

        It takes a command of the class that the command's number stands for.
        """


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
    closed_producers: set[int]
    """The numbers of producers that were closed from this side, to which sends may still be under way."""

    @property
    def engine_has_failed(self) -> bool:
        """Return True if the process is about to end, so that nothing in memory may be relied on."""

    @property
    def has_ended(self) -> bool:
        """Return True if nothing may be opened on the connection any more."""

    def answered(self, request: "PulsarRequest", answer: Sequence[Buffer]) -> None:
        """Send the answer to a request; no bytes if it wants none."""

    def has_begun(self, transaction_id: TransactionId) -> None:
        """Note that a transaction was begun over the connection."""

    def gather(self, request: "PulsarRequest", producer: Producer, command: CommandSend) -> None:
        """Let a SEND be appended with the others that come in this turn of the loop."""

    def acknowledge_soon(self, consumer: Consumer, runs: Sequence[Run], before: Offset) -> None:
        """Let messages be acknowledged with the others that come in this turn of the loop."""

    def acknowledge(self, asked: "Asked") -> None:
        """Let an ACK that wants an answer be decided with the others that come in this turn of the loop."""

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
        handler: ServedCommand | None,
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


class Asked(Struct, frozen=True):
    """An ACK that wants an answer, and what it names; `done` gets the answer of the core."""

    request: PulsarRequest
    consumer: Consumer
    transaction: TransactionId | None
    runs: Sequence[Run]
    before: Offset
    done: Callable[[Answer], None]

    def joins(self, other: "Asked") -> bool:
        """Return whether this may be decided together with another one, which came before it."""
        same = self.consumer is other.consumer and self.transaction == other.transaction
        return same and not self.before and not other.before
