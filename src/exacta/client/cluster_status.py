"""Ask who serves the log of an Exacta, and let another broker lead (Ask, MoveLead)."""

from exacta.client.ask import ask
from exacta.client.deadline import Backoff, Deadline
from exacta.client.errors import ClientError, UnsupportedByBroker
from exacta.client.routing import Anyone, Client, Controller
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17792_ask import AskRequest
from exacta.protocol.kafka.messages.k17793_move_lead import MoveLeadRequest
from exacta.readmodel.cluster import AskCluster, ClusterStatus

_OF_BROKERS = frozenset({ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, ErrorCode.BROKER_ID_NOT_REGISTERED})
"""The errors that say which brokers are there; another attempt would not change that."""


class NotMoved(ClientError):
    """The lead was not moved, or not to where it should."""


def cluster_status(client: Client, deadline: Deadline | None = None) -> ClusterStatus:
    """Return the brokers that share a log, as the first one that answers knows them.

    Raises `UnsupportedByBroker` on any other cluster than an Exacta, and what `Client.call` raises.
    """
    deadline = deadline or client.deadline()
    if not client.offers(Anyone(), AskRequest(), deadline):
        raise UnsupportedByBroker(f"{client.bootstrap} is no Exacta: exacta cluster describe shows its brokers")
    return ask(client, AskCluster(), ClusterStatus, "asking for the brokers", deadline, Anyone())


def move_lead(client: Client, to: int | None = None, deadline: Deadline | None = None) -> ClusterStatus:
    """Let another broker lead, the one with this node id or any; return the cluster once one does.

    A broker that leads already is left alone. Raises `NotMoved`, and what `Client.call` raises.
    """
    deadline = deadline or client.deadline()
    before = cluster_status(client, deadline)
    if before.leader is None:
        raise NotMoved("no broker leads now: see exacta cluster status")
    _ask_to_move(client, before, to, deadline)
    if before.leader == to:
        return before
    status, backoff = before, Backoff()
    while status.leader is None or status.epoch == before.epoch:
        backoff.wait(deadline, NotMoved(f"broker {before.leader} was asked, and no other one leads yet"))
        status = cluster_status(client, deadline)
    if to is None or status.leader == to:
        return status
    return move_lead(client, to, deadline)  # another one was faster


def _ask_to_move(client: Client, before: ClusterStatus, to: int | None, deadline: Deadline) -> None:
    request = MoveLeadRequest(epoch=before.epoch, node_id=-1 if to is None else to)
    what = "moving the lead"
    reply = client.call(
        Controller(),
        request,
        what=what,
        codes=lambda reply: (0 if reply.error_code in _OF_BROKERS else reply.error_code,),
        deadline=deadline,
    )
    if reply.error_code in _OF_BROKERS:
        lives = ", ".join(str(each.node_id) for each in before.brokers if each.is_live)
        named = "" if to is None else f" {to}"
        raise NotMoved(f"there is no other broker{named} to lead; these live: {lives}")
