"""The roles of a broker of a cluster, from the start of its process to the end. Pure: the server carries them out.

Owns which role follows which. Owns neither who may lead (the ledger's epochs say that) nor how a role is carried out.

Theory of operation. A broker that *begins* opens the ledger and reads the log. It *follows* then, which serves readers,
and waits for the lead. With the lead it *leads*. Whatever fails, it drops all that it has in memory, *rests* for a
moment and begins again from what PostgreSQL has; the ledger's epochs make it harmless that it might still think
otherwise. A leader that is asked to let another lead *leaves*: it finishes what has gathered, and begins again. A
leader that is to stop finishes in the same way.

    role       read       has lead  failed   rested     finished   move     stop      refused
    beginning  following  -         resting  -          -          -        ended     ended
    following  -          leading   resting  -          -          -        ended     ended
    leading    -          -         resting  -          -          leaving  stopping  ended
    resting    -          -         -        beginning  -          -        ended     ended
    leaving    -          -         resting  -          beginning  -        stopping  ended
    stopping   -          -         ended    -          ended      -        -         ended
    ended      -          -         -        -          -          -        -         -

*read*: the state is what the log says. *has lead*: the journal that may append was handed out. *failed*: the ledger,
the follower or the journal can no longer be used, or another broker leads. *rested*: the moment is over. *finished*:
all that had gathered is durable. *move*: an operator wants another broker to lead. *stop*: the process is to end.
*refused*: this broker must not go on, such as one whose node id another broker has. A dash: the role stays; what comes
comes too late, or is for a leader.

Clients are served in two roles, and there only while the broker is in touch with PostgreSQL. Each change of role closes
their connections.

    clients    in touch  out of touch
    beginning  no        no
    following  yes       no
    leading    yes       no
    resting    no        no
    leaving    no        no
    stopping   no        no
    ended      no        no
"""

import enum
from collections.abc import Mapping
from typing import Final


class BrokerRole(enum.Enum):
    """The task of a broker at a time."""

    BEGINNING = "beginning"
    FOLLOWING = "following"
    LEADING = "leading"
    RESTING = "resting"
    LEAVING = "leaving"
    STOPPING = "stopping"
    ENDED = "ended"


class Happened(enum.Enum):
    """The causes of a change of role."""

    READ = "read"
    HAS_LEAD = "has lead"
    FAILED = "failed"
    RESTED = "rested"
    FINISHED = "finished"
    MOVE = "move"
    STOP = "stop"
    REFUSED = "refused"


_NEXT: Final[Mapping[BrokerRole, Mapping[Happened, BrokerRole]]] = {
    BrokerRole.BEGINNING: {
        Happened.READ: BrokerRole.FOLLOWING,
        Happened.FAILED: BrokerRole.RESTING,
        Happened.STOP: BrokerRole.ENDED,
        Happened.REFUSED: BrokerRole.ENDED,
    },
    BrokerRole.FOLLOWING: {
        Happened.HAS_LEAD: BrokerRole.LEADING,
        Happened.FAILED: BrokerRole.RESTING,
        Happened.STOP: BrokerRole.ENDED,
        Happened.REFUSED: BrokerRole.ENDED,
    },
    BrokerRole.LEADING: {
        Happened.FAILED: BrokerRole.RESTING,
        Happened.MOVE: BrokerRole.LEAVING,
        Happened.STOP: BrokerRole.STOPPING,
        Happened.REFUSED: BrokerRole.ENDED,
    },
    BrokerRole.RESTING: {
        Happened.RESTED: BrokerRole.BEGINNING,
        Happened.STOP: BrokerRole.ENDED,
        Happened.REFUSED: BrokerRole.ENDED,
    },
    BrokerRole.LEAVING: {
        Happened.FAILED: BrokerRole.RESTING,
        Happened.FINISHED: BrokerRole.BEGINNING,
        Happened.STOP: BrokerRole.STOPPING,
        Happened.REFUSED: BrokerRole.ENDED,
    },
    BrokerRole.STOPPING: {
        Happened.FAILED: BrokerRole.ENDED,
        Happened.FINISHED: BrokerRole.ENDED,
        Happened.REFUSED: BrokerRole.ENDED,
    },
    BrokerRole.ENDED: {},
}
_SERVING: Final = frozenset({BrokerRole.FOLLOWING, BrokerRole.LEADING})


def next_role(role: BrokerRole, happened: Happened) -> BrokerRole:
    """Return the role after what has happened; the same one: nothing is to be done."""
    return _NEXT[role].get(happened, role)


def serves_clients(role: BrokerRole, *, in_touch: bool) -> bool:
    """Return whether clients are let in."""
    return in_touch and role in _SERVING
