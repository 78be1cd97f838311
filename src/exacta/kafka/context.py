"""One request on its way: who asked, and the answer in its place in the connection's order."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from exacta.engine.fetch import Admitted, FetchRequest
from exacta.protocol.kafka.codec import encode_response
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.schema import Buffer, Message

if TYPE_CHECKING:
    from exacta.kafka.connection import Connection
    from exacta.kafka.handler import Handler

T = TypeVar("T")
logger = logging.getLogger("exacta.kafka")

LONGEST_CLIENT_ID = 255
"""Characters. Transactions, their incidents and group members keep it; bounds on those count them, not their bytes."""


class Fetch:
    """What the engine reads for a request, or waits for."""

    __slots__ = ("admitted", "found_bytes", "request", "reserved_bytes")

    def __init__(self, request: FetchRequest) -> None:
        self.request = request
        self.found_bytes = 0
        self.admitted: Admitted | None = None
        """To be called when there is room for what was found; None while nothing is, and afterwards."""
        self.reserved_bytes = 0
        """The room that its answer has got."""


class RequestContext:
    """A request that has been read and not answered yet; handlers get it beside the message."""

    __slots__ = (
        "client_id",
        "connection",
        "correlation_id",
        "fetch",
        "handler",
        "response",
        "size",
        "version",
    )

    def __init__(
        self, connection: "Connection", handler: "Handler", version: int, correlation_id: int, client_id: str, size: int
    ) -> None:
        self.connection = connection
        self.handler = handler
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id[:LONGEST_CLIENT_ID]
        self.size = size
        self.response: list[Buffer] | None = None
        """The encoded answer; None until there is one, empty where the request wants none."""
        self.fetch: Fetch | None = None

    @property
    def client_host(self) -> str:
        """Where the client sits, as Kafka shows it for a group's members."""
        return "/" + self.connection.peer_host

    @property
    def local_host(self) -> str:
        """The address by which the client has reached us."""
        return self.connection.local_host

    def reply(self, message: Message | None) -> None:
        """Answer; None sends nothing. The connection sends answers in the order of the requests."""
        if message is None:
            self.send([])
            return
        try:
            encoded = encode_response(message, self.version, self.correlation_id)
        except Exception:  # noqa: BLE001  # a bug of ours must not reach the engine
            self.fail()
            return
        self.send(encoded)

    def send(self, response: list[Buffer]) -> None:
        """Answer with what has been encoded already. A second answer is a bug and is dropped."""
        if self.response is None:
            self.response = response
            self.connection.answered(self, response)

    def rests_on(self, group_number: int) -> None:
        """Note the commit group that the answer rests on; 0: none. Later reads on this connection see it, too."""
        if group_number:
            self.connection.rests_on = group_number

    def guard(self, done: Callable[[T], None]) -> Callable[[T], None]:
        """Wrap a callback that the engine will call: an exception in it must end here."""

        def guarded(result: T) -> None:
            try:
                done(result)
            except Exception:  # noqa: BLE001  # see above
                self.fail()

        return guarded

    def fail(self) -> None:
        """Report the exception being handled, a bug of ours: as an error code where the answer has room for it.

        Where the engine has failed it is no bug, and nobody is answered any more.
        """
        has_ended = self.connection.engine_has_failed
        if not has_ended:
            logger.exception("%s v%d from %s failed", self.handler.name, self.version, self.connection.peer)
        if not has_ended and self.response is None and self.handler.plain_error is not None:
            message = self.handler.plain_error(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
            self.send(encode_response(message, self.version, self.correlation_id))
        else:
            self.connection.abort()
            self.send([])  # there is no connection to send it: but the request is no more at work

    def reads(self, request: FetchRequest) -> None:
        """Let the request wait for room before it is read, and be forgotten with the connection."""
        fetch = self.fetch = Fetch(request)
        request.admit = lambda size, admitted: self.connection.admit(fetch, size, admitted)

    def hang_up(self, reason: str) -> None:
        """Close the connection: the only way to tell a client that wants no answer that something is wrong."""
        self.connection.refuse(reason)
