"""One client's connection: frames to commands of Pulsar's protocol, and their answers.

Owns the handshake, the choice of a command's handler, the questions whether the other side is there, and what becomes
of a client that sends nonsense. Owns no command; frames, memory and time are `FramedConnection`'s.

Theory of operation. CONNECT comes first; through a door that asks for a login nothing else is read before that has
succeeded (`login.py`), and no command begins while a login is on its way. Each command is handed to its handler the
moment that its frame is whole. An answer leaves when it is there, since it names its request; only receipts leave in
the order of their SENDs (`sending.py`). SENDs and ACKs are gathered until another command comes, or until the next
turn of the loop.

A connection on which nothing has come for 30 seconds is asked by a PING, and closed if nothing has come 30 seconds
later either. A client that sends what cannot be understood loses this connection, with one line in the log.

It reads bytes before a login.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from exacta.config.configuration import Configuration
from exacta.core.commands import AbandonHandles
from exacta.core.ids import TransactionId
from exacta.core.values.quotas import QuotaKey
from exacta.front.connection import SIZE_BYTES, FramedConnection
from exacta.front.doors import TLS_HANDSHAKE, Door
from exacta.front.quotas import Account
from exacta.ports.authorizer import Operation, Resource, ResourceKind
from exacta.ports.record_format import Buffer
from exacta.protocol.pulsar.commands import unwrapped
from exacta.protocol.pulsar.errors import BrokenFrame
from exacta.protocol.pulsar.frames import FRAME_MARGIN, Frame, build_frame, parse_frame
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, CommandPing, CommandSend, ServerError
from exacta.pulsar.acknowledging import Acknowledgements
from exacta.pulsar.at_follower import ELSEWHERE
from exacta.pulsar.client_ids import client_id_of
from exacta.pulsar.consumers import Consumer, Consumers
from exacta.pulsar.context import Ack, Handler, PulsarRequest
from exacta.pulsar.handing_over import closed_for
from exacta.pulsar.handlers import HANDLERS
from exacta.pulsar.login import Login, Phase, challenge, rest_s
from exacta.pulsar.needs import lacking
from exacta.pulsar.producers import Producer
from exacta.pulsar.sending import Sends, close_producer
from exacta.pulsar.shared import PulsarShared
from exacta.security.exchange import LoggedIn

logger = logging.getLogger("exacta.pulsar")

LIST_BEGINS = bytes((8, BaseCommand.GET_TOPICS_OF_NAMESPACE))
CONNECT_BEGINS = bytes((8, BaseCommand.CONNECT))
"""The first bytes of CONNECT, and of the command that asks for a list of topics: the command's number comes first."""

PING_SECONDS = 30.0
"""Clients ask as often, and give a connection up that is silent for twice this time."""

MOST_BEGUN = 10_000
"""This many of the last transactions that were begun over a connection are known: as many as may be open."""

GATHERED = frozenset({BaseCommand.SEND, BaseCommand.ACK})
"""The commands that are decided together with others of their kind."""


def _command_name(number: int) -> str:
    return str(BaseCommand.Type.Name(number))


def _largest_frame(configuration: Configuration) -> int:
    return configuration.pulsar_max_message_size + FRAME_MARGIN


class PulsarClientConnection(FramedConnection):
    """Created by the listener for each client; see `ClientConnection` for `register` and `forget`."""

    logger = logger
    front = "pulsar"
    smallest_frame = 4  # the size of the command

    def __init__(
        self,
        shared: PulsarShared,
        door: Door,
        loop: asyncio.AbstractEventLoop,
        register: Callable[["PulsarClientConnection"], bool],
        forget: Callable[["PulsarClientConnection"], None],
    ) -> None:
        broker = shared.broker
        configuration = broker.configuration
        super().__init__(
            configuration,
            broker.memory,
            loop,
            register,
            forget,
            largest_frame=configuration.sasl_server_max_receive_size if door.login else _largest_frame(configuration),
        )
        self.login = Login() if door.login else None
        """The login of this connection, begun or ended; None: nobody logs in by this door."""
        self._asking: asyncio.TimerHandle | None = None
        """The question for a new login; None: it was asked, or is not to be."""
        self.client_version = ""
        self.producers: dict[int, Producer] = {}
        self.closed_producers: set[int] = set()
        self._transactions_begun: deque[TransactionId] = deque(maxlen=MOST_BEGUN)
        self.shared = shared
        self.door = door
        self._broker = broker
        self._arrivals = broker.arrivals if door.login else None
        self._meter = None if broker.meter is None else broker.meter.front(self.front, _command_name)
        self.consumers = Consumers(shared, self)
        self._sends = Sends(broker, self)
        self._acknowledgements = Acknowledgements(broker, self)
        self._worked_on_bytes = 0
        """The bytes of the frames that are owed an answer."""
        self._ping_timer: asyncio.TimerHandle | None = None
        self._quotas = broker.quotas
        self._held_back: asyncio.TimerHandle | None = None
        """The end of the time in which nothing is pushed, because consumers have used their quota; None: it is."""
        self._heard_bytes = 0
        self._has_asked = False

    @property
    def engine_has_failed(self) -> bool:
        """Return True if the process is about to end, so that nothing in memory may be relied on."""
        return self._broker.engine.failed is not None

    @property
    def has_ended(self) -> bool:
        """Return True if nothing may be opened on the connection any more."""
        return self._closing

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport over; wait for the login, where there is one, and ask whether the client is there."""
        super().connection_made(transport)
        self._ping_timer = self._loop.call_later(PING_SECONDS, self._look_whether_there)

    # --- commands -----------------------------------------------------------------------------------------------------

    def wrong_size(self, size: int, beginning: bytes) -> str:
        """See `FramedConnection`."""
        if beginning.startswith(TLS_HANDSHAKE):
            return (
                "a TLS handshake came to a door for Pulsar's clients that speaks no TLS: clients use pulsar://, or the "
                "door of --pulsar-tls-listen"
            )
        return f"a frame of {size} bytes; from {self.smallest_frame} to {self._largest_frame} are allowed"

    def may_begin(self, frame: memoryview) -> bool:
        """Let a list of topics wait, which may be long."""
        return bytes(frame[SIZE_BYTES : SIZE_BYTES + len(LIST_BEGINS)]) != LIST_BEGINS

    def receive(self, frame: memoryview) -> None:
        """Hand a command to its handler."""
        if not self._quotas.held:
            self._receive(frame)
            return
        before = self._quotas.switch(None)
        self._receive(frame)
        self._quotas.switch(before)

    def _receive(self, frame: memoryview) -> None:
        is_to_log_in = self.login is not None and self.login.phase is Phase.BEGUN
        if is_to_log_in and frame[SIZE_BYTES : SIZE_BYTES + len(CONNECT_BEGINS)] != CONNECT_BEGINS:
            self.refuse("it sent something other than CONNECT where it has to log in")
            return
        try:
            parsed = parse_frame(frame)
        except BrokenFrame as broken:
            self.refuse(str(broken))
            return
        is_connect = parsed.command.type == BaseCommand.CONNECT
        if is_connect is bool(self.client_version):
            self.refuse("CONNECT came twice" if is_connect else "the first command is not CONNECT")
            return
        request = self._request(parsed, SIZE_BYTES + len(frame))
        charge = self._charge(request) if self._quotas.held and not is_connect else None
        try:
            if parsed.command.type not in GATHERED:
                self._sends.flush()
                self._acknowledgements.flush()
            self._serve(request)
        except Exception:  # noqa: BLE001  # a bug in one handler must not end the server
            request.fail()
        if charge is not None and charge.is_timed:
            self._wait(self._quotas.take_time(charge, self._now_ms()))

    def _charge(self, request: PulsarRequest) -> Account:
        """Return the account of a command; the bytes of a SEND are counted."""
        client_id = client_id_of(request, self.producers, self.consumers)
        charge = self._quotas.charge(self.principal.name, client_id)
        if charge.is_timed:
            self._quotas.switch(charge)
        if request.type == BaseCommand.SEND:
            self._wait(self._quotas.take(charge, QuotaKey.PRODUCER_BYTE_RATE, request.size, self._now_ms()))
        return charge

    def _wait(self, throttle_ms: int) -> None:
        if throttle_ms:
            self.mute(throttle_ms / 1000)

    def _now_ms(self) -> float:
        return self._loop.time() * 1000

    def _request(self, frame: Frame, size: int) -> PulsarRequest:
        self._worked_on_bytes += size
        handler = HANDLERS.get(frame.command.type)
        request = PulsarRequest(self, handler, frame.command.type, unwrapped(frame.command), frame.entry, size)
        if handler is not None and (meter := self._meter) is not None:
            request.meter, request.begun_s = meter.api(request.type), meter.clock()
        return request

    def _serve(self, request: PulsarRequest) -> None:
        handler = HANDLERS.get(request.type)
        if handler is None:
            request.hang_up(f"{type(request.command).__name__} is not for a broker")
            return
        declared = handler.at_follower
        if self._broker.cluster.leads:
            self._handle(handler, request)
        elif declared.error is not None:
            request.refuse(declared.error, ELSEWHERE)
        elif declared.catches_up:
            self._broker.catch_up(request, lambda: self._handle(handler, request))
        else:
            self._handle(handler, request)

    def _handle(self, handler: Handler[Any], request: PulsarRequest) -> None:
        lack = lacking(self._broker, request, handler.needs, request.command)
        if lack is not None:
            request.refuse(ServerError.AuthorizationError, lack)
            return
        handler.handle(self._broker, request.command, request)

    def let_in(self, logged_in: LoggedIn, expires_in_s: float | None) -> None:
        """See `PulsarConnection`. Before that time is over, the client is asked to log in once more."""
        assert self.login is not None
        self.login.phase, self.principal = Phase.OPEN, logged_in.principal
        self._has_shown("login", logged_in.holds, expires_in_s)
        self._largest_frame = _largest_frame(self.configuration)
        self._ask_no_more()
        ask_in_s = rest_s(expires_in_s, self.configuration.authenticationRefreshCheckSeconds)
        if ask_in_s is not None and self.login.understands_challenges:
            self._asking = self._loop.call_later(ask_in_s, self._ask_for_login, self.login)

    def _ask_for_login(self, login: Login) -> None:
        login.phase, self._asking = Phase.ASKED, None
        self.push([build_frame(challenge(login.method))])

    def _ask_no_more(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    def gather(self, request: PulsarRequest, producer: Producer, command: CommandSend) -> None:
        """See `PulsarConnection`."""
        if self._sends.take(request, producer, command):
            self._loop.call_soon(self._sends.flush)

    def acknowledge(self, ack: Ack) -> None:
        """See `PulsarConnection`."""
        if self._acknowledgements.take(ack):
            self._loop.call_soon(self._acknowledgements.flush)

    def stop_taking_requests(self) -> None:
        """Read no more; what was gathered is appended now, since the engine takes no commands afterwards."""
        self._sends.flush()
        self._acknowledgements.flush()
        super().stop_taking_requests()

    # --- answers ------------------------------------------------------------------------------------------------------

    def answered(self, request: PulsarRequest, answer: Sequence[Buffer]) -> None:
        """See `PulsarConnection`."""
        size = sum(map(len, answer))
        self._worked_on_bytes -= request.size
        if request.meter is not None and self._meter is not None:
            request.meter.answered(request.size, size, self._meter.clock() - request.begun_s)
        if self.answer_made(request.size, size):
            self.send_answer(answer, size)

    def push(self, buffers: Sequence[Buffer]) -> None:
        """See `ClientConnection`; when the answers of all connections take too much memory, consumers wait."""
        super().push(buffers)
        if self._answers.is_full() and self.consumers and not self._closing:
            self.consumers.set_can_send(False)
            self._answers.wait(self)

    def delivered(self, consumer: Consumer, size: int) -> None:
        """See `PushedTo`."""
        if not self._quotas.held:
            return
        account = self._quotas.charge(self.principal.name, consumer.name)
        throttle_ms = self._quotas.take(account, QuotaKey.CONSUMER_BYTE_RATE, size, self._now_ms())
        if throttle_ms:
            if self._held_back is not None:
                self._held_back.cancel()
            self._held_back = self._loop.call_later(throttle_ms / 1000, self._push_again)
            self.consumers.set_can_send(False)

    def most_bytes(self, consumer: Consumer) -> float | None:
        """See `PushedTo`."""
        if not self._quotas.held:
            return None
        account = self._quotas.charge(self.principal.name, consumer.name)
        return self._quotas.most(account, QuotaKey.CONSUMER_BYTE_RATE, self._now_ms())

    def _push_again(self) -> None:
        self._held_back = None
        self._look_whether_it_can_send()

    def room_again(self) -> None:
        """See `BudgetedConnection`."""
        super().room_again()
        self._look_whether_it_can_send()

    def _look_whether_it_can_send(self) -> None:
        is_held = self._closing or self._write_paused or self._held_back is not None
        self.consumers.set_can_send(not is_held and not self._answers.is_full())

    def pause_writing(self) -> None:
        """Push nothing more to a client that does not read, as long as it does not."""
        super().pause_writing()
        self.consumers.set_can_send(False)

    def _look_whether_there(self) -> None:
        if self._closing:
            return
        if self._received_bytes != self._heard_bytes or self._owed or self.is_muted:
            self._heard_bytes, self._has_asked = self._received_bytes, False
        elif self._has_asked:
            logger.warning("closing the connection of %s, which does not answer", self.peer)
            self.abort()
            return
        else:
            self._has_asked = True
            self.push([build_frame(CommandPing())])
        self._ping_timer = self._loop.call_later(PING_SECONDS, self._look_whether_there)

    def hand_over(self) -> None:
        """See `ClientConnection`: what is open here goes on at the leader without a look-up (PIP-307)."""
        urls = self.shared.leader_urls("")
        if urls is not None and not self._broker.cluster.leads:
            self.push([build_frame(each) for each in closed_for(self.producers, self.consumers.numbers, urls)])
        super().hand_over()

    def let_go(self) -> Iterator[None]:
        """Close the producers and consumers that may not write, or read, any more."""
        for producer in list(self.producers.values()):
            if not self._may(Operation.WRITE, producer.place[0]):
                close_producer(self.shared.producers, self, producer)
            yield None
        yield from self.consumers.let_go(self._may_consume)

    def _may_consume(self, consumer: Consumer) -> bool:
        return self._may(Operation.READ, consumer.place[0]) and (
            not consumer.needs_group or self._may(Operation.READ, consumer.subscription, ResourceKind.GROUP)
        )

    def _may(self, operation: Operation, name: str, kind: ResourceKind = ResourceKind.TOPIC) -> bool:
        return self._broker.authorizer.allows(self.principal, self.peer_host, operation, Resource(kind, name))

    def on_closed(self) -> int:
        """Forget the producers and the consumers; return the bytes of the commands that are still worked on."""
        for timer in (self._ping_timer, self._held_back):
            if timer is not None:
                timer.cancel()
        self._ask_no_more()
        for producer in self.producers.values():
            self.shared.producers.close(producer)
        self.producers.clear()
        self._acknowledgements.flush()
        self.consumers.disconnect_all()
        self._abandon()
        return self._worked_on_bytes

    def has_begun(self, transaction_id: TransactionId) -> None:
        """See `PulsarConnection`. The connection may be closed by now."""
        self._transactions_begun.append(transaction_id)
        if self.has_ended:
            self._abandon()

    def _abandon(self) -> None:
        if self._transactions_begun and not self._broker.engine.dispatcher.has_stopped:
            self._broker.engine.submit(
                (AbandonHandles(transactions=tuple(self._transactions_begun)),), lambda answers: None
            )
        self._transactions_begun.clear()
