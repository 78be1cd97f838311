"""The brokers of the cluster as a Kafka client is told of them, by the door through which it came.

Theory of operation. Every broker keeps the whole log, and one broker leads all of it. So the leader leads each
partition, coordinates each group and transactional id, and is the controller. The replicas of a partition are all
brokers that live, and all of them are in sync: what a broker does not know yet lies in the same place for all of them,
and no record waits for a replica. Tools that count replicas thus find none missing, and a consumer takes a follower for
its preferred replica only if that is among them (KIP-392). The leader comes first, as the preferred replica in
elections, so that no tool wants to elect another one.

This broker is told by the address that the client's own door tells. Another one is told by the address of its door of
the same name, and left out where it has none.
"""

from collections.abc import Sequence
from typing import NamedTuple

from exacta.front.broker import Broker
from exacta.kafka.context import RequestContext
from exacta.protocol.kafka.errors import ErrorCode

NOBODY = -1
"""The id of a leader that nobody knows."""


class ToldNode(NamedTuple):
    """A broker that a client can connect to."""

    node_id: int
    host: str
    port: int
    rack: str | None


class ToldCluster(NamedTuple):
    """The brokers that a client can connect to, and the one that leads every partition."""

    nodes: list[ToldNode]
    leader: ToldNode | None
    leader_epoch: int
    error: ErrorCode
    """The reason why there is no leader; NONE if there is one."""
    replicas: list[int]
    """The node ids of all these brokers, the leader first."""

    @property
    def leader_id(self) -> int:
        """The node id of the leader; -1: there is none whom the client could reach."""
        return NOBODY if self.leader is None else self.leader.node_id


def told_cluster(broker: Broker, context: RequestContext) -> ToldCluster:
    """Return the cluster as the client of this request can reach it."""
    cluster, door = broker.cluster, context.connection.door.name
    found = {node.node_id: node for node in cluster.nodes}
    if (leads := cluster.leader) is not None:
        found[leads.node_id] = leads
    nodes = []
    for node_id in sorted(found):
        address = context.endpoint if node_id == cluster.node_id else found[node_id].addresses.get(door)
        if address is not None:
            nodes.append(ToldNode(node_id, *address, found[node_id].rack))
    leader = None if leads is None else next((node for node in nodes if node.node_id == leads.node_id), None)
    error = ErrorCode.NONE
    if leader is None:
        error = ErrorCode.LEADER_NOT_AVAILABLE if leads is None else ErrorCode.LISTENER_NOT_FOUND
    replicas = sorted((node.node_id for node in nodes), key=lambda node_id: leader is None or node_id != leader.node_id)
    return ToldCluster(nodes, leader, broker.engine.advice.leader_epoch, error, replicas)


def node_ids(broker: Broker) -> list[int]:
    """Return the node ids of the brokers that live, this one included."""
    return sorted({broker.cluster.node_id, *(node.node_id for node in broker.cluster.nodes)})


def can_be_on(broker: Broker, wanted: Sequence[int]) -> bool:
    """Return whether a partition can be assigned to these brokers, each named once; it is on the others as well."""
    return bool(wanted) and len(set(wanted)) == len(wanted) and set(wanted) <= set(node_ids(broker))
