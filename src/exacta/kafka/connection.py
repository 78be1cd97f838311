"""One client's connection: frames to requests of Kafka's protocol, and their answers in order.

Owns the header of a request, the choice of its handler, the order of answers, and what becomes of a client that sends
nonsense. Owns no API; frames, memory and time are `FramedConnection`'s.

Theory of operation. Requests are handed to their handlers the moment they are whole, without waiting for the answers to
earlier ones (pipelining); each is a place in a queue, and answers leave strictly in that order. A request larger than
`socket.request.max.bytes` is refused by its size field alone, before its body is read. One of more elements than
`request_size.py` allows is refused before the one too many is read: with an error code where that alone is an answer,
else by the end of the connection.

A request of more than `STEP_ELEMENTS` elements is decoded on a thread, served in parts where its handler says so, and
its answer is encoded on a thread. Until it is served no further request of the connection begins.

What may be long is made for the head of the queue only (`long_answers.py`): a fetch waits for records wherever it
stands, and reads them when all earlier answers are on their way.

A client that sends what cannot be understood loses this connection, with one line in the log, and nothing else happens.

It reads bytes before a login.
"""

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache, partial

from exacta.config.configuration import Configuration
from exacta.core.values.quotas import QuotaKey
from exacta.front.connection import SIZE_BYTES, FramedConnection
from exacta.front.doors import TLS_HANDSHAKE, Door
from exacta.front.turns import STEP_ELEMENTS, Steps
from exacta.kafka.context import ApiVersions, Fetch, RequestContext, TokenContext
from exacta.kafka.handler import Handler, Reply
from exacta.kafka.handlers import HANDLERS
from exacta.kafka.login import Login
from exacta.kafka.long_answers import LONG_ANSWERS
from exacta.kafka.parts import in_parts, is_too_much, parts_of
from exacta.kafka.request_size import most_elements
from exacta.kafka.serving import serve
from exacta.kafka.shared import KafkaShared
from exacta.ports.authorizer import Operation, Resource, ResourceKind
from exacta.ports.log import Admitted
from exacta.protocol.kafka.apis import API, ApiKey
from exacta.protocol.kafka.codec import (
    DecodeError,
    TooManyElements,
    decode_request,
    decode_request_header,
    encode_response,
)
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from exacta.protocol.kafka.schema import Buffer, Message
from exacta.security.exchange import LoggedIn

logger = logging.getLogger("exacta.kafka")

_HTTP = frozenset({b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"DELE", b"PATC", b"CONN", b"TRAC", b"PRI "})
"""The first bytes of HTTP requests; read as sizes, all are above a gigabyte."""

SASL_AUTHENTICATE = HANDLERS[ApiKey.SASL_AUTHENTICATE]

_key_of = struct.Struct(">h").unpack_from


def foreign_protocol(beginning: bytes, *, logs_in: bool) -> str | None:
    """Say what came instead of the size of a request, by its four bytes; None: it is nothing that is known here."""
    if beginning in _HTTP:
        return "an HTTP request came to the Kafka port"
    if beginning.startswith(TLS_HANDSHAKE):
        protocol = "SASL_PLAINTEXT" if logs_in else "PLAINTEXT"
        return f"a TLS handshake came to the Kafka port, which speaks no TLS: clients set security.protocol={protocol}"
    return None


@cache
def _api_versions(configuration: Configuration) -> ApiVersions:
    return tuple(
        (key, HANDLERS[key].advertised_min_version, HANDLERS[key].advertised_max_version(configuration))
        for key in sorted(HANDLERS)
    )


def _api_name(key: int) -> str:
    return API[ApiKey(key)].name


class KafkaClientConnection(FramedConnection):
    """Created by the listener for each client; see `ClientConnection` for `register` and `forget`."""

    logger = logger
    front = "kafka"
    smallest_frame = 8  # API key, version, correlation id

    def __init__(
        self,
        shared: KafkaShared,
        door: Door,
        loop: asyncio.AbstractEventLoop,
        register: Callable[["KafkaClientConnection"], bool],
        forget: Callable[["KafkaClientConnection"], None],
    ) -> None:
        broker = shared.broker
        configuration = broker.configuration
        super().__init__(
            configuration,
            broker.memory,
            loop,
            register,
            forget,
            largest_frame=configuration.socket_request_max_bytes,
        )
        self.login = Login() if door.login else None
        """The login of this connection, begun or ended; None: nobody logs in by this door."""
        if self.login is not None:
            self._largest_frame = configuration.sasl_server_max_receive_size
        self.client_software = ""
        """The client's software by its own name (KIP-511); empty: it has not said it."""
        self.shared = shared
        self.door = door
        self._broker = broker
        self._arrivals = broker.arrivals if door.login else None
        self._meter = None if broker.meter is None else broker.meter.front(self.front, _api_name)
        self._quotas = broker.quotas
        self._most_elements = most_elements(configuration.limits())
        self._unanswered: deque[RequestContext] = deque()
        """The requests whose answers have not left, in their order."""

    @property
    def engine_has_failed(self) -> bool:
        """Return True if the process is about to end, so that nothing in memory may be relied on."""
        return self._broker.engine.failed is not None

    def api_versions(self) -> ApiVersions:
        """Return what is served on this connection."""
        return _api_versions(self.configuration)

    # --- requests -----------------------------------------------------------------------------------------------------

    def wrong_size(self, size: int, beginning: bytes) -> str:
        """See `FramedConnection`."""
        if size <= self._largest_frame:
            return f"a request of {size} bytes cannot be one"
        if (foreign := foreign_protocol(beginning, logs_in=self.door.login)) is not None:
            return foreign
        if self.login is not None and self.login.principal is None:
            return f"a message of {size} bytes before the login is above sasl.server.max.receive.size"
        return f"a request of {size} bytes is above socket.request.max.bytes={self._largest_frame}"

    def may_begin(self, frame: memoryview) -> bool:
        """Let a request wait whose answer may be long; a bare token is no request, and may be shorter than a key."""
        return self._takes_token() or _key_of(frame)[0] not in LONG_ANSWERS

    def receive(self, frame: memoryview) -> None:
        """Hand a request to its handler."""
        if self.login is not None and not self._is_let_through(self.login, frame):
            return
        if not self._quotas.held:
            self._receive(frame)
            return
        before = self._quotas.switch(None)
        self._receive(frame)
        self._quotas.switch(before)

    def _receive(self, frame: memoryview) -> None:
        try:
            header, body_start = decode_request_header(frame)
        except DecodeError as error:
            self.refuse(f"malformed request header: {error}")
            return
        handler = HANDLERS.get(header.api_key)
        if handler is None:
            self.refuse(f"API key {header.api_key} is not served")
            return
        version = header.api_version
        size = SIZE_BYTES + len(frame)
        context = RequestContext(self, handler, version, header.correlation_id, header.client_id or "", size)
        if (meter := self._meter) is not None:
            context.meter, context.begun_s = meter.api(header.api_key), meter.clock()
        if self._quotas.held and (self.login is None or self.login.principal is not None):
            self._charge(context)
        first, last = handler.versions
        if not first <= version <= last:
            self._answer_unserved(handler, context, frame[body_start:])
            return
        try:
            request = decode_request(frame, header, body_start, STEP_ELEMENTS)
        except TooManyElements:
            self._unanswered.append(context)
            decode = partial(decode_request, frame, header, body_start, self._most_elements)
            context.in_steps(self._serve_long(handler, decode, context))
            return
        except DecodeError as error:
            self.refuse(f"malformed {handler.name} v{version}: {error}")
            return
        self._unanswered.append(context)
        try:
            self.serve(handler, request, context)
        except Exception:  # noqa: BLE001  # a bug in one handler must not end the server
            context.fail()

    def _charge(self, context: RequestContext) -> None:
        """Let a request have an account, and count its bytes where it is a Produce."""
        charge = context.charge = self._quotas.charge(self.principal.name, context.client_id)
        if charge.is_timed:
            self._quotas.switch(charge)
        if context.handler.key is ApiKey.PRODUCE:
            context.use(QuotaKey.PRODUCER_BYTE_RATE, context.size)

    def _takes_token(self) -> bool:
        return self.login is not None and self.login.takes_tokens

    def _is_let_through(self, login: Login, frame: memoryview) -> bool:
        """Return whether a request is read; else it was a bare token of a login, or the end of the connection."""
        if self._takes_token():
            context = TokenContext(self, SASL_AUTHENTICATE, SIZE_BYTES + len(frame))
            self._unanswered.append(context)
            self._hand(SASL_AUTHENTICATE, context, SaslAuthenticateRequest(auth_bytes=bytes(frame)), context.reply)
            return False
        reason = login.refusal(_key_of(frame)[0], self._loop.time())
        if reason is not None:
            self.refuse(reason)
        return reason is None

    def now_s(self) -> float:
        """Return the time by the clock of the event loop, in seconds."""
        return self._loop.time()

    def expect_token(self) -> None:
        """Take the next frame for a bare token, which may be short."""
        self.smallest_frame = 1

    def let_in(self, logged_in: LoggedIn, expires_in_s: float | None) -> None:
        """Serve the client, which has logged in, on behalf of its principal, at most for this time."""
        self.principal = logged_in.principal
        self._has_shown("login", logged_in.holds, expires_in_s)
        self.smallest_frame = KafkaClientConnection.smallest_frame
        self._largest_frame = self.configuration.socket_request_max_bytes

    def serve(self, handler: Handler, request: Message, context: RequestContext) -> None:
        """Let the handler serve a request, as far as the client may ask for it; a long one in parts where it may be."""
        parts = parts_of(handler.parts, request, is_long=context.is_long) if handler.parts else None
        if parts is not None and is_too_much(parts, request):
            context.reply(handler.refusal_of_all(request, ErrorCode.POLICY_VIOLATION, context.version))
        elif parts is not None:
            context.is_long = True
            context.in_steps(in_parts(parts, request, partial(self._hand, handler, context), context.reply))
        else:
            self._hand(handler, context, request, context.reply)

    def _hand(self, handler: Handler, context: RequestContext, request: Message, reply: Reply) -> None:
        serve(handler, self._broker, request, context, reply)

    def _serve_long(self, handler: Handler, decode: Callable[[], Message], context: RequestContext) -> Steps:
        """Serve a request of many elements, which is decoded on a thread."""
        context.is_long = True
        request = yield decode
        plain = handler.plain_error(ErrorCode.INVALID_REQUEST) if isinstance(request, TooManyElements) else None
        if plain is not None:
            context.reply(plain)
        elif isinstance(request, DecodeError):
            self.refuse(f"malformed {handler.name} v{context.version}: {request}")
            context.send([])
        elif isinstance(request, Exception):
            raise request
        else:
            self.serve(handler, request, context)

    def described(self, frame: memoryview) -> str:
        """See `FramedConnection`."""
        if self._takes_token():
            return f"a token of {len(frame)} bytes from {self.peer}"
        key, version = _key_of(frame)[0], _key_of(frame, 2)[0]
        name = HANDLERS[key].name if key in HANDLERS else f"API {key}"
        return f"{name} v{version} of {len(frame)} bytes from {self.peer}"

    def _answer_unserved(self, handler: Handler, context: RequestContext, body: memoryview) -> None:
        response = None
        if handler.answer_unserved is not None:
            try:
                response = handler.answer_unserved(context, body)
            except DecodeError as error:
                self.refuse(f"malformed {handler.name} v{context.version}: {error}")
                return
        if response is None:
            self.refuse(f"{handler.name} v{context.version} is not served")
            return
        self._unanswered.append(context)
        context.send(response)

    # --- answers ------------------------------------------------------------------------------------------------------

    def encode(self, context: RequestContext, message: Message) -> None:
        """Encode a long answer on a thread, and send it."""

        def encoded(found: list[Buffer] | Exception) -> None:
            try:
                if isinstance(found, Exception):
                    raise found
                context.send(found)
            except Exception:  # noqa: BLE001  # a bug of ours must not reach the loop
                context.fail()

        work = partial(encode_response, message, context.version, context.correlation_id)
        self._broker.memory.conversions.on_thread(work, encoded, owner=self.peer_host)

    def answered(self, context: RequestContext, response: list[Buffer]) -> None:
        """Let what has become ready at the head of the queue leave.

        From now on the request's place counts for the bytes of its answer, which are held until they are sent.
        """
        size = sum(map(len, response))
        if context.meter is not None and self._meter is not None:
            context.meter.answered(context.size, size, self._meter.clock() - context.begun_s)
        reserved_bytes = 0 if context.fetch is None else context.fetch.reserved_bytes
        if not self.answer_made(context.size, size, reserved_bytes):
            context.response = []
            return
        context.size = size
        unanswered = self._unanswered
        while unanswered and (ready := unanswered[0].response) is not None:
            first = unanswered.popleft()
            first.response = []  # a handler that still knows the request must not keep its answer alive
            self.send_answer(ready, first.size)

    def admit(self, fetch: Fetch, size: int, admitted: Admitted) -> None:
        """Call back when there is room for an answer of this size, or for a shorter one, and all earlier ones left."""
        if not self._closing:
            fetch.found_bytes, fetch.admitted = size, admitted
            self.has_room()

    def has_room(self) -> None:
        """Let the first request in the queue read its records, if it waits for that."""
        if not self._unanswered:
            return
        context = self._unanswered[0]
        fetch = context.fetch
        if fetch is None or fetch.admitted is None:
            return
        most_bytes = self.take_room(fetch.found_bytes)
        if most_bytes is None:
            return
        admitted, fetch.admitted = fetch.admitted, None
        fetch.reserved_bytes = min(fetch.found_bytes, most_bytes)
        try:
            admitted(most_bytes)
        except Exception:  # noqa: BLE001  # as in `receive`
            context.fail()

    def let_go(self) -> Iterator[None]:
        """Let fetches wait no more that ask for topics which the client may not read any more; they say so."""
        authorizer, engine = self._broker.authorizer, self._broker.engine
        for fetch in [each.fetch for each in self._unanswered if each.fetch is not None]:
            for number, topic in enumerate(dict.fromkeys(each.topic for each in fetch.request.partitions), 1):
                resource = Resource(ResourceKind.TOPIC, topic)
                if not authorizer.allows(self.principal, self.peer_host, Operation.READ, resource):
                    engine.hurry_fetch(fetch.request)
                    break
                if not number % STEP_ELEMENTS:
                    yield None

    def on_closed(self) -> int:
        """Forget the fetches; return the bytes of the requests that handlers are still at work on."""
        waiting, self._unanswered = self._unanswered, deque()
        worked_on_bytes = 0
        for context in waiting:
            if context.fetch is not None:
                self._broker.engine.forget_fetch(context.fetch.request)
                context.fetch.admitted = None
                context.size = 0
            elif context.response is None:
                worked_on_bytes += context.size
        return worked_on_bytes
