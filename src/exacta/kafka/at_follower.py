"""The declaration of what a follower does with the requests of an API: each handler says it beside its key.

A follower (decision 0074) keeps the whole log as far as it has followed it, and decides nothing. Three kinds of
requests come to it:

- What Apache Kafka answers at every broker, by its copy of the cluster's metadata, a follower answers from what it has
  followed, once that is all that was decided before the request came. So no answer is behind an earlier one of another
  broker, as it may be with Apache Kafka.
- What clients ask of a leader, a coordinator or the controller is refused, by the error after which they look for it
  again. It is not forwarded.
- What clients ask of every broker, to add up the answers, is answered with nothing: the leader answers with all.

`serving.py` does what is declared here.
"""

from msgspec import Struct

from exacta.protocol.kafka.errors import ErrorCode


class AtFollower(Struct, frozen=True, kw_only=True):
    """The treatment of a request at a follower."""

    does: str
    """The treatment in words, for the reader of the page of the protocol."""
    catches_up: bool = False
    """True: the handler is asked once the follower knows all that was decided before the request came."""
    code: ErrorCode | None = None
    """The error code by which the request is refused; None: its handler is asked, unless the answer is empty."""
    is_empty: bool = False
    """True: the answer is empty where a broker leads. Where none does, it is the error code."""
    ends_connection: bool = False
    """True: the connection ends after the refusal, since clients ask any broker. They ask where they have a connection,
    which would be this broker again and again (13 of 20 of Kafka's own admin clients)."""


SERVES = AtFollower(does="It answers.")
CATCHES_UP = AtFollower(does="It answers once it has caught up with the leader.", catches_up=True)
NOT_LEADER = AtFollower(
    does="It refuses each partition by NOT_LEADER_OR_FOLLOWER.", code=ErrorCode.NOT_LEADER_OR_FOLLOWER
)
NOT_COORDINATOR = AtFollower(does="It refuses by NOT_COORDINATOR.", code=ErrorCode.NOT_COORDINATOR)
NOT_CONTROLLER = AtFollower(does="It refuses by NOT_CONTROLLER.", code=ErrorCode.NOT_CONTROLLER)
NOT_CONTROLLER_ELSEWHERE = AtFollower(
    does="It refuses by NOT_CONTROLLER and ends the connection, so that clients that ask any broker ask another one.",
    code=ErrorCode.NOT_CONTROLLER,
    ends_connection=True,
)
EMPTY = AtFollower(
    does="It answers with an empty list, since the leader lists all. Where no broker leads, it refuses by "
    "COORDINATOR_NOT_AVAILABLE.",
    code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
    is_empty=True,
)


def by_request(does: str, *, catches_up: bool = False) -> AtFollower:
    """Return the declaration of a handler that looks at the request itself."""
    return AtFollower(does=does, catches_up=catches_up)
