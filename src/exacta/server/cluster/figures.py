"""The figures of a broker of a cluster that operators are shown: its role, its touch, how far the others are behind.

The age of the tail is found by marks: each second the log's end is noted with the time, so that it is known how long
ago the log went beyond the position at which the tail begins. Where there are too many marks, every other one goes.
"""

from collections.abc import Callable, Mapping
from typing import Final

from exacta.server.cluster.belongings import Belongings
from exacta.server.cluster.nodes import LIVES_MS, AnnouncedCluster, Knowledge
from exacta.server.cluster.roles import BrokerRole

_MOST_MARKS: Final = 4096


class ClusterFigures:
    """The figures of one broker. Implements `exacta.metrics.sources.ClusterSource`."""

    def __init__(self, cluster: AnnouncedCluster, has: Belongings, seconds: Callable[[], float]) -> None:
        self.role = BrokerRole.BEGINNING
        self.leads_taken = 0
        """The number of times that this broker has taken the lead."""
        self._cluster = cluster
        self._has = has
        self._seconds = seconds
        self._marks: list[tuple[int, float]] = []
        """Positions, and when the log was first seen to end there, in order."""

    @property
    def leads(self) -> bool:
        """True if this broker leads."""
        return self.role is BrokerRole.LEADING

    @property
    def is_in_touch(self) -> bool:
        """True if this broker has lately heard from the database."""
        return self._cluster.in_touch

    @property
    def words(self) -> str:
        """The role in a word."""
        return {BrokerRole.LEADING: "leader", BrokerRole.FOLLOWING: "follower"}.get(self.role, self.role.value)

    @property
    def brokers(self) -> int:
        """The number of brokers that live, this one included."""
        return len(self._cluster.nodes)

    @property
    def lags(self) -> Mapping[int, int]:
        """The bytes by which each other broker that lives is behind this one, as it has announced itself last."""
        position, own = self._has.position, self._cluster.node_id
        return {
            each.broker.node_id: max(0, position - each.broker.position)
            for each in self._cluster.brokers
            if each.broker.node_id != own and each.age_ms < LIVES_MS
        }

    @property
    def tail_bytes(self) -> int:
        """The bytes of the log that are not in objects yet."""
        return max(0, self._has.position - self._has.tail_from)

    @property
    def tail_seconds(self) -> float:
        """The age of the oldest group that is not in objects yet, as far as this broker has seen it come."""
        return self.seconds_since(self._has.tail_from)

    def seconds_since(self, position: int) -> float:
        """Return how long ago the log was first seen to end beyond a position; 0: it does not, or that is forgotten."""
        since = next((at for end, at in self._marks if end > position), None)
        return 0.0 if since is None else self._seconds() - since

    def look(self) -> Knowledge:
        """Note how far the log has come, and return what is announced of this broker."""
        position, tail_from = self._has.position, self._has.tail_from
        if position and (not self._marks or position > self._marks[-1][0]):
            self._marks.append((position, self._seconds()))
        self._marks = [each for each in self._marks if each[0] > tail_from]
        if len(self._marks) > _MOST_MARKS:
            self._marks = self._marks[::2]
        return Knowledge(self._has.catalog, position)
