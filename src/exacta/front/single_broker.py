"""The cluster of a broker that nobody shares the log with."""

from collections.abc import Callable, Sequence

from exacta.ports.cluster import Node


class SingleBroker:
    """A cluster of one broker, which leads, for as long as it runs. See `exacta.ports.cluster.Cluster`."""

    leads = True

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.leader = Node(node_id, None, {})
        self.nodes: Sequence[Node] = (self.leader,)

    def on_change(self, changed: Callable[[], None]) -> None:
        """Call nobody back: nothing changes."""
