"""One HTTP request on its way: what the engine calls back, and the answer that is waited for.

A handler works as those of the other fronts do: it is a plain function that asks the broker, returns at once, and
answers when the broker calls it back, so that an answer rests on durable state. Only what waits for the answer awaits.
"""

import asyncio
import logging

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from exacta.front.doors import Door
from exacta.front.request import Request
from exacta.ports.authorizer import ANONYMOUS, Principal
from exacta.web.answers import json_answer

logger = logging.getLogger("exacta.web")

MOST_BODY_BYTES = 64 << 10
"""The longest body that is read."""


PRINCIPAL = "principal"
"""The key of the principal of a request, in its state (ASGI): the connection's, until the request has logged in."""
CALLER = "caller"
"""The key of the `Caller`, in the state of all requests of a connection."""


class Caller:
    """The client of one connection, as its requests see it."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.peer_host = ""
        self.peer = ""
        self.told: tuple[Principal, str] | None = None
        """The login that the audit log was told last: who, and by which method."""
        self.logins_begun = 0
        """The requests whose logins are looked at, or wait to be refused."""


class Unread(Exception):
    """A body that was not read to its end; `answer` says why, if anybody is left to hear it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.answer = json_answer(status, {"reason": reason})


class Peer:
    """The connection of one request, as the broker sees it."""

    def __init__(self, request: HttpRequest) -> None:
        self.principal: Principal = request.scope.get("state", {}).get(PRINCIPAL, ANONYMOUS)
        client, server = request.client, request.scope.get("server")
        self.peer_host = "" if client is None else client.host
        self.peer = "" if client is None else f"{client.host}:{client.port}"
        self.local_host = "" if server is None else str(server[0])
        self.rests_on = 0

    def refuse(self, reason: str) -> None:
        """Do nothing: a request by HTTP always has an answer."""

    def abort(self) -> None:
        """Do nothing, as `refuse` does."""


class WebRequest(Request):
    """A request that has been read and not answered yet. A second answer is dropped."""

    __slots__ = ("_answer", "body", "http")

    def __init__(self, http: HttpRequest, body: bytes) -> None:
        super().__init__(Peer(http))
        self.http = http
        self.body = body
        self._answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

    async def answer(self) -> Response:
        """Wait for the answer."""
        return await self._answer

    def reply(self, response: Response) -> None:
        """Answer."""
        if not self._answer.done():
            self._answer.set_result(response)

    def reply_json(self, body: object, status: int = 200) -> None:
        """Answer with a value in JSON."""
        self.reply(json_answer(status, body))

    def reply_nothing(self) -> None:
        """Answer that it is done, with no body."""
        self.reply(Response(status_code=204))

    def fail(self) -> None:
        """Report the exception that is being handled."""
        logger.exception("%s %s from %s failed", self.http.method, self.http.url.path, self.connection.peer)
        self.reply_json({"reason": "an error in the server: see its log"}, 500)


async def read_body(http: HttpRequest) -> bytes:
    """Read the body of a request. Raises Unread."""
    body = bytearray()
    try:
        async for chunk in http.stream():
            body += chunk
            if len(body) > MOST_BODY_BYTES:
                raise Unread(413, f"a body may have {MOST_BODY_BYTES} bytes")
    except ClientDisconnect as gone:
        raise Unread(400, "the client has gone") from gone
    return bytes(body)
