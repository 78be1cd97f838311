"""A server on a thread of its own with two doors of Kafka's protocol: one for all, and one that asks for a login."""

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exacta.config.options import configure
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.front.doors import Door, Endpoint
from exacta.server.event_loop import new_event_loop
from exacta.server.server import Server

SECONDS = 20
LOCAL = Endpoint("127.0.0.1", 0)
OPTIONS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
    "connection.failed.authentication.delay.ms": 1,
}


class Served:
    """The server; `local` and `secured` are the addresses of its doors."""

    def __init__(self, data: Path, options: Mapping[str, Any] = OPTIONS, own: Mapping[str, str] | None = None) -> None:
        """`own` are the options that the door with a login has for itself."""
        self._loop = new_event_loop()
        doors = [
            Door(front="kafka", name="LOCAL", endpoint=LOCAL),
            Door(front="kafka", name="SASL_PLAINTEXT", endpoint=LOCAL, login=True, options=own or {}),
        ]
        self._server = Server(self._loop, configure(options), data, doors)
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._run(self._start())
        self.local, self.secured = (str(each.endpoint) for each in self._server.reception.doors)

    async def _start(self) -> None:
        self._server.open()
        await self._server.start()

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    def __enter__(self) -> "Served":
        """Return the server, which runs already."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop it."""
        self.stop()

    def stop(self) -> None:
        """Stop, and wait until it has stopped."""
        self._run(self._server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
