"""The brokers of a cluster, as fronts tell clients of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol


class Node(NamedTuple):
    """A broker that clients can be sent to: where it is reached, by the name of the door through which they came."""

    node_id: int
    rack: str | None
    addresses: Mapping[str, tuple[str, int]]


class Cluster(Protocol):
    """Know who is who. A single broker is a cluster of one that leads."""

    @property
    def node_id(self) -> int:
        """The node id of this broker."""

    @property
    def leads(self) -> bool:
        """True if this broker leads the log: it decides; the others only serve what they have followed."""

    @property
    def leader(self) -> Node | None:
        """The broker that leads; None: nobody does, or nobody knows."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The brokers that live, this one included, by node id."""

    def on_change(self, changed: Callable[[], None]) -> None:
        """Call back when the leader or the nodes have changed."""
