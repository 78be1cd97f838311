"""One request on its way: who asks, and what becomes of a bug in the callbacks that work on it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol, TypeVar

from exacta.ports.authorizer import Principal
from exacta.ports.log import FetchRequest

T = TypeVar("T")


class RequestConnection(Protocol):
    """The connection of a request, as the request sees it."""

    peer: str
    """Host and port of the client."""
    peer_host: str
    local_host: str
    """The address by which the client has reached this broker."""
    principal: Principal
    rests_on: int
    """The number of the last commit group that an answer on this connection rests on (decision 0028)."""

    def refuse(self, reason: str) -> None:
        """Close the connection because of what the client sent."""

    def abort(self) -> None:
        """Close the connection at once."""


class Request(ABC):
    """A request that has been read and not answered yet. A front derives its own, which knows how to answer."""

    __slots__ = ("connection",)

    def __init__(self, connection: RequestConnection) -> None:
        self.connection = connection

    @property
    def principal(self) -> Principal:
        """The principal on whose behalf the client asks."""
        return self.connection.principal

    @property
    def client_host(self) -> str:
        """Return the client's host as it is shown for a group's members: a slash and the address, as Kafka has it."""
        return "/" + self.connection.peer_host

    @property
    def local_host(self) -> str:
        """The address by which the client has reached this broker."""
        return self.connection.local_host

    def rests_on(self, group_number: int) -> None:
        """Note the commit group that the answer rests on; 0: none. Later reads on this connection see it, too."""
        if group_number:
            self.connection.rests_on = group_number

    def guard(self, done: Callable[[T], None]) -> Callable[[T], None]:
        """Wrap a callback that the engine will call: an exception in it must end here."""

        def guarded(result: T) -> None:
            try:
                done(result)
            except Exception:  # noqa: BLE001  # a bug in one callback must not reach the engine
                self.fail()

        return guarded

    @abstractmethod
    def fail(self) -> None:
        """Report the exception that is being handled, which is a bug of ours."""

    def reads(self, request: FetchRequest) -> None:
        """Let a fetch wait for room before its records are read, and be forgotten with the connection.

        A front whose clients fetch has its own. Those of the others are pushed records, or read none.
        """
        raise NotImplementedError

    def hang_up(self, reason: str) -> None:
        """Close the connection: the only way to tell a client that wants no answer that something is wrong."""
        self.connection.refuse(reason)
