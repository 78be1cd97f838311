"""The brokers of a cluster, as fronts tell clients of them."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from exacta.readmodel.cluster import ClusterStatus


class Node(NamedTuple):
    """A broker that clients can be sent to: where it is reached, by the name of the door through which they came."""

    node_id: int
    rack: str | None
    addresses: Mapping[str, tuple[str, int]]


class Unmovable(Enum):
    """The reasons why the lead is not handed to another broker."""

    ALONE = "no other broker is there to lead"
    UNKNOWN = "there is no such broker"
    NOT_LEADING = "this broker does not lead"


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

    def status(self) -> ClusterStatus:
        """Return all that this broker knows of the cluster, for operators."""

    def move(self, epoch: int, to: int | None) -> Unmovable | None:
        """Let another broker lead soon, if this one leads in this epoch; None: so it will, or another leads already.

        `to` is the node id of the broker that is to lead; None: any.
        """

    def on_change(self, changed: Callable[[], None]) -> None:
        """Call back when the leader or the nodes have changed."""
