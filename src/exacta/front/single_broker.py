"""The cluster of a broker that nobody shares the log with."""

from collections.abc import Callable, Sequence

from exacta.ports.cluster import Node, Unmovable
from exacta.readmodel.cluster import BrokerStatus, ClusterStatus


class SingleBroker:
    """A cluster of one broker, which leads, for as long as it runs. See `exacta.ports.cluster.Cluster`."""

    leads = True

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.leader = Node(node_id, None, {})
        self.nodes: Sequence[Node] = (self.leader,)

    def status(self) -> ClusterStatus:
        """See `Cluster`."""
        me = BrokerStatus(node_id=self.node_id, leads=True)
        return ClusterStatus(
            answered_by=self.node_id, role="leader", is_shared=False, leader=self.node_id, brokers=(me,)
        )

    def move(self, epoch: int, to: int | None) -> Unmovable | None:
        """Refuse all but to lead by itself."""
        return None if to == self.node_id else Unmovable.ALONE

    def on_change(self, changed: Callable[[], None]) -> None:
        """Call nobody back: nothing changes."""
