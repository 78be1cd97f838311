"""Several commands of one connection that are decided in one step, as the engine's callbacks see them."""

from collections.abc import Sequence

from exacta.front.request import Request
from exacta.pulsar.context import PulsarConnection, PulsarRequest, logger


class RequestGroup(Request):
    """Some commands of one connection: a bug in what is done for them ends all of them, and the connection."""

    __slots__ = ("requests",)

    connection: PulsarConnection

    def __init__(self, connection: PulsarConnection, requests: Sequence[PulsarRequest]) -> None:
        self.connection = connection
        self.requests = requests

    def fail(self) -> None:
        """Report the exception that is being handled; the client connects again, and asks again."""
        if not self.connection.engine_has_failed:
            name = type(self.requests[0].command).__name__
            logger.exception("%d times %s from %s failed", len(self.requests), name, self.connection.peer)
        self.connection.abort()
        for each in self.requests:
            each.end()
