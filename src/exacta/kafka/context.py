"""One Kafka request on its way: its version and correlation id, and the answer in its place in the order."""

import logging
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from exacta.config.configuration import Configuration
from exacta.core.rejections import Rejection
from exacta.core.replies import Reply
from exacta.core.values.quotas import QuotaKey
from exacta.front.doors import Door
from exacta.front.meter import ApiMeter
from exacta.front.quotas import Account, Quotas
from exacta.front.request import Request, RequestConnection
from exacta.front.turns import Steps
from exacta.kafka.errors import error_code
from exacta.kafka.login import Login
from exacta.kafka.shared import KafkaShared
from exacta.ports.log import Admitted, FetchRequest
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.codec import encode_response
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k36_sasl_authenticate import SaslAuthenticateResponse
from exacta.protocol.kafka.schema import Buffer, Message
from exacta.security.exchange import LoggedIn

logger = logging.getLogger("exacta.kafka")

LONGEST_CLIENT_ID = 255
"""This many characters of a client id are kept. Transactions, their incidents and group members keep it; the bounds on
those count them, not their bytes."""

LONGEST_THROTTLE_MS = 2**31 - 1

T = TypeVar("T")

ApiVersions = tuple[tuple[int, int, int], ...]
"""API keys with the lowest and the highest version that is offered of each, in the order of the keys."""


class KafkaConnection(RequestConnection, Protocol):
    """The connection of a request, as the request and the handlers see it."""

    configuration: Configuration
    shared: KafkaShared
    door: Door
    login: Login | None
    """The login of the connection, begun or ended; None: nobody logs in by its door."""
    client_software: str
    """The client's software by its own name (KIP-511); empty: it has not said it."""

    @property
    def engine_has_failed(self) -> bool:
        """Return True if the process is about to end, so that nothing in memory may be relied on."""

    def api_versions(self) -> ApiVersions:
        """Return what is served on this connection."""

    def answered(self, context: "RequestContext", response: list[Buffer]) -> None:
        """Take the answer to a request; it leaves when all earlier ones have left."""

    def admit(self, fetch: "Fetch", size: int, admitted: Admitted) -> None:
        """Call back when there is room for an answer of this size, or for a shorter one, and all earlier ones left."""

    def encode(self, context: "RequestContext", message: Message) -> None:
        """Encode a long answer on a thread, and send it."""

    def work(
        self, steps: Steps, failed: Callable[[], None], abandoned: Callable[[], None], what: Callable[[], str]
    ) -> None:
        """Do work in steps; no further request begins until it has ended, or is abandoned with the connection."""

    def now_s(self) -> float:
        """Return the time by the clock of the event loop, in seconds."""

    def expect_token(self) -> None:
        """Take the next frame for a bare token, which may be short."""

    def let_in(self, logged_in: LoggedIn, expires_in_s: float | None) -> None:
        """Serve the client, which has logged in, on behalf of its principal, at most for this time."""

    def mute(self, seconds: float) -> None:
        """Begin no further request for this time; what has begun is answered."""

    def close(self) -> None:
        """Close once everything that is ready has been sent."""

    def close_if_idle(self) -> bool:
        """Close, or do nothing and return False where an answer is owed."""


class ServedApi(Protocol):
    """The API of a request, as the request sees it."""

    @property
    def name(self) -> str:
        """Kafka's name of the API."""

    @property
    def key(self) -> ApiKey:
        """The key of the API."""

    def plain_error(self, code: ErrorCode) -> Message | None:
        """Return the answer that is an error code alone; None: not every version has room for one."""


class Fetch:
    """The records that the engine reads for a request, or waits for."""

    __slots__ = ("admitted", "found_bytes", "request", "reserved_bytes")

    def __init__(self, request: FetchRequest) -> None:
        self.request = request
        self.found_bytes = 0
        self.admitted: Admitted | None = None
        """The function to call when there is room for what was found; None while nothing is found, and afterwards."""
        self.reserved_bytes = 0
        """The room that its answer has got."""


class RequestContext(Request):
    """A request that has been read and not answered yet; handlers get it beside the message."""

    __slots__ = (
        "begun_s",
        "charge",
        "client_id",
        "correlation_id",
        "fetch",
        "handler",
        "is_long",
        "meter",
        "response",
        "size",
        "version",
    )

    connection: KafkaConnection

    def __init__(
        self,
        connection: KafkaConnection,
        handler: ServedApi,
        version: int,
        correlation_id: int,
        client_id: str,
        size: int,
    ) -> None:
        self.connection = connection
        self.handler = handler
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id[:LONGEST_CLIENT_ID]
        self.size = size
        """The bytes of the request with its size field; the bytes of the answer, once there is one."""
        self.response: list[Buffer] | None = None
        """The encoded answer; None until there is one, empty where the request wants none."""
        self.fetch: Fetch | None = None
        self.is_long = False
        """True: there is so much in the answer that it is encoded on a thread."""
        self.meter: ApiMeter | None = None
        """Counts the request once it is answered, with the time from `begun_s` by the meter's clock; None: nothing."""
        self.begun_s = 0.0
        self.charge: Account | None = None
        """The account of the request; None: nobody has a quota."""

    @property
    def shared(self) -> KafkaShared:
        """The parts that all connections of the front share."""
        return self.connection.shared

    @property
    def endpoint(self) -> tuple[str, int]:
        """The host and the port that this client is told to connect to: those of the door that it came in by."""
        told = self.connection.door.endpoint_for(self.local_host)
        return told.host, told.port

    def reply(self, message: Message | None) -> None:
        """Answer; None sends nothing. The connection sends answers in the order of the requests."""
        if self.charge is not None:
            self._throttle(self.charge, message)
        if message is None:
            self.send([])
            return
        if self.is_long:
            self.connection.encode(self, message)
            return
        try:
            encoded = encode_response(message, self.version, self.correlation_id)
        except Exception:  # noqa: BLE001  # a bug of ours must not reach the engine
            self.fail()
            return
        self.send(encoded)

    # --- quotas -------------------------------------------------------------------------------------------------------

    def use(self, key: QuotaKey, amount: float) -> int:
        """Count what the request uses; return the throttle time, in which no further request of the client begins."""
        if self.charge is None:
            return 0
        return self._muted(self.shared.broker.quotas.take(self.charge, key, amount, self._now_ms()))

    def owes(self, key: QuotaKey) -> bool:
        """Return whether the client must wait before it uses anything; no further request of it begins meanwhile."""
        if self.charge is None:
            return False
        return self._muted(self.shared.broker.quotas.owed(self.charge, key, self._now_ms())) > 0

    def most(self, key: QuotaKey, wanted: int) -> int:
        """Return how much the request should use: what it wants, or less."""
        if self.charge is None:
            return wanted
        most = self.shared.broker.quotas.most(self.charge, key, self._now_ms())
        return wanted if most is None else min(wanted, max(int(most), 1))

    def guard(self, done: Callable[[T], None]) -> Callable[[T], None]:
        """Wrap a callback that the engine will call; its time counts for the request."""
        guarded, charge = super().guard(done), self.charge
        if charge is None or not charge.is_timed:
            return guarded
        quotas = self.shared.broker.quotas

        def timed(result: T) -> None:
            before = quotas.switch(charge)
            guarded(result)
            quotas.switch(before)

        return timed

    def _throttle(self, charge: Account, message: Message | None) -> None:
        """Count the time of the request, and let its answer say how long the client must wait (KIP-219)."""
        if charge.is_timed:
            self._muted(self.shared.broker.quotas.take_time(charge, self._now_ms()))
        if charge.throttle_ms and message is not None and hasattr(message, "throttle_time_ms"):
            message.throttle_time_ms = min(charge.throttle_ms, LONGEST_THROTTLE_MS)

    def _muted(self, throttle_ms: int) -> int:
        if throttle_ms:
            self.connection.mute(throttle_ms / 1000)
        return throttle_ms

    def _now_ms(self) -> float:
        return self.connection.now_s() * 1000

    # --- the rest -----------------------------------------------------------------------------------------------------

    def error_code(self, answer: Reply | Rejection) -> ErrorCode:
        """Return the code for an answer of the core to this request; NONE for a reply."""
        return error_code(answer, self.handler.key, self.version)

    def in_steps(self, steps: Steps) -> None:
        """Serve the request in steps."""
        if self.charge is not None and self.charge.is_timed:
            steps = _timed(steps, self.charge, self.shared.broker.quotas)
        self.connection.work(steps, self.fail, lambda: self.send([]), self.described)

    def described(self) -> str:
        """Return what the request is, and who asks."""
        return f"{self.handler.name} v{self.version} from {self.connection.peer}"

    def send(self, response: list[Buffer]) -> None:
        """Answer with what has been encoded already. A second answer is a bug and is dropped."""
        if self.response is None:
            self.response = response
            self.connection.answered(self, response)

    def fail(self) -> None:
        """Report the exception that is being handled: as an error code where the answer has room for it.

        Where the engine has failed it is no bug, and nobody is answered any more.
        """
        has_ended = self.connection.engine_has_failed
        if not has_ended:
            logger.exception("%s v%d from %s failed", self.handler.name, self.version, self.connection.peer)
        message = None if has_ended else self.handler.plain_error(ErrorCode.UNKNOWN_SERVER_ERROR)
        if message is not None and self.response is None:
            self.send(encode_response(message, self.version, self.correlation_id))
        else:
            self.connection.abort()
            self.send([])  # there is no connection to send it, but nobody works on the request any more

    def reads(self, request: FetchRequest) -> None:
        """Let a fetch wait for room before its records are read, and be forgotten with the connection."""
        fetch = self.fetch = Fetch(request)
        request.admit = lambda size, admitted: self.connection.admit(fetch, size, admitted)


def _timed(steps: Steps, charge: Account, quotas: Quotas) -> Steps:
    """Return the same steps, whose time counts for a request."""
    sent: Any = None
    try:
        while True:
            before = quotas.switch(charge)
            try:
                wanted = steps.send(sent)
            except StopIteration:
                return
            finally:
                quotas.switch(before)
            sent = yield wanted
    finally:
        steps.close()


class TokenContext(RequestContext):
    """A bare token of a login by SaslHandshake v0: its answer is another one, or the end of the connection."""

    __slots__ = ()

    def __init__(self, connection: KafkaConnection, handler: ServedApi, size: int) -> None:
        super().__init__(connection, handler, 0, 0, "", size)

    def reply(self, message: Message | None) -> None:
        """Answer with the token alone; there is no room for an error."""
        if isinstance(message, SaslAuthenticateResponse) and message.error_code == ErrorCode.NONE:
            self.send([len(message.auth_bytes).to_bytes(4, "big"), message.auth_bytes])
        else:
            self.send([])
