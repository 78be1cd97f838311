"""A front as a server sees it: it makes the connections of its clients, and serves some of what is asked by HTTP."""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from exacta.front.broker import Broker
from exacta.front.doors import Door


class Front(Protocol):
    """One protocol at the doors of a server. It holds the broker and what only its protocol has."""

    def connection(self, door: Door) -> asyncio.BaseProtocol:
        """Return the connection of a new client, which has come in by this door."""

    def routes(self) -> Sequence[Any]:
        """Return the routes of what its clients ask by HTTP, of the web framework, which is loaded for them."""


class EarlyFront(Front, Protocol):
    """A front that answers already while the log is being read, and learns the broker later."""

    def serve(self, broker: Broker, routes: Sequence[Any]) -> None:
        """Answer by this broker from now on, and serve the routes of the other fronts."""

    def withdraw(self) -> None:
        """Answer by no broker until the next one, as while the log is being read."""
