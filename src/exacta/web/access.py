"""The rights that an HTTP client needs of the server itself; what a front's own routes need, the front asks.

    path              right
    `/health/live`    none
    `/health/ready`   none; the details need `Describe` on the cluster
    `/metrics`        `Describe` on the cluster

Until the journal has been read nobody knows who may do what. Where there are access rules, or the door asks for a login
(`web/login.py`), nothing is told until then.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from exacta.front.broker import Broker
from exacta.ports.authorizer import ANONYMOUS, CLUSTER, Operation
from exacta.web.answers import json_answer
from exacta.web.requests import CALLER, Peer

Endpoint: TypeAlias = Callable[[HttpRequest], Awaitable[Response]]


class ServerRights:
    """Says who may see the server. `is_closed` means that not everybody may: there are access rules."""

    def __init__(self, *, is_closed: bool) -> None:
        self.broker: Broker | None = None
        """None: the journal is being read."""
        self._is_closed = is_closed

    def describes(self, http: HttpRequest) -> bool:
        """Return whether the client of a request may see the server in detail."""
        peer, caller = Peer(http), http.scope.get("state", {}).get(CALLER)
        if caller is not None and caller.door.login and (self.broker is None or peer.principal is ANONYMOUS):
            return False
        if self.broker is None:
            return not self._is_closed
        return self.broker.authorizer.allows(peer.principal, peer.peer_host, Operation.DESCRIBE, CLUSTER)

    def describing(self, endpoint: Endpoint) -> Endpoint:
        """Return an endpoint for clients that may see the server in detail; others are refused."""

        async def checked(http: HttpRequest) -> Response:
            if self.describes(http):
                return await endpoint(http)
            if self.broker is None:
                return json_answer(503, {"reason": "the broker recovers, and does not know yet who may ask"})
            return json_answer(403, {"reason": "the client has no right to Describe on the cluster"})

        return checked
