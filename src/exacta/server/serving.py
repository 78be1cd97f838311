"""The service of clients over one log: the broker, and what ends the connections whose rights or logins are gone.

A server alone has one from its start to its end; a broker of a cluster has one in each role that serves clients.
"""

import asyncio
from typing import TYPE_CHECKING

from exacta.front.broker import Broker
from exacta.front.revocation import Revocation
from exacta.server.connections import Connections
from exacta.server.reception import Reception
from exacta.server.trust import Trust

if TYPE_CHECKING:
    from exacta.security.token_keys import KeySet


class Serving:
    """One of a server at a time."""

    def __init__(
        self,
        broker: Broker,
        connections: Connections,
        reception: Reception,
        loop: asyncio.AbstractEventLoop,
        token_keys: "KeySet | None",
    ) -> None:
        self.broker = broker
        self._revocation = Revocation(broker, connections)
        self._trust = Trust(reception, token_keys, loop, self._revocation.look)
        connections.belong_to(broker, self._revocation)

    def start(self) -> None:
        """Look at rights and logins from now on."""
        self._revocation.start()
        self._trust.start()

    def stop(self) -> None:
        """Look no more."""
        self._trust.stop()
        self._revocation.stop()
