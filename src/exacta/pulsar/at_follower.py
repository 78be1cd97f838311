"""The declaration of what a follower does with a command: each handler says it beside its number.

A follower (decision 0074) keeps the whole log as far as it has followed it, and decides nothing. The leader serves
every topic and is the coordinator of transactions. So a client is told at each broker where the leader is, and what it
opens elsewhere is refused by the error after which it looks again. A client must not be told an older truth than it
knows: what it asks about topics waits until the follower has caught up.
"""

from msgspec import Struct

from exacta.protocol.pulsar.messages_pb2 import ServerError


class AtFollower(Struct, frozen=True, kw_only=True):
    """The treatment of a command at a follower."""

    does: str
    """The treatment in words, for the reader of the page of the protocol."""
    error: ServerError | None = None
    """The error by which the command is refused; None: its handler is asked."""
    catches_up: bool = False
    """True: the handler is asked once the follower knows all that was decided before the command came."""


SERVES = AtFollower(does="It answers.")
CATCHES_UP = AtFollower(does="It answers once it has caught up with the leader.", catches_up=True)
NOT_READY = AtFollower(
    does="It refuses by ServiceNotReady, and the client looks the topic up again.", error=ServerError.ServiceNotReady
)
NO_COORDINATOR = AtFollower(
    does="It refuses by TransactionCoordinatorNotFound, and the client looks the coordinator up again.",
    error=ServerError.TransactionCoordinatorNotFound,
)
NOT_OPEN = AtFollower(does="It passes it over, since nothing is open here.", error=ServerError.ServiceNotReady)

NO_LEADER = "no broker leads the log now: look up again"
ELSEWHERE = "this broker does not lead the log: look up again which one does"
"""The texts of these errors."""
