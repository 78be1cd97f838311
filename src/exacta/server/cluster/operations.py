"""The answers of a broker of a cluster to its operators: what it knows of the others, and the handing over of a lead.

Implements `exacta.server.cluster.nodes.Operated`.
"""

from collections.abc import Callable

from exacta.ports.cluster import Unmovable
from exacta.ports.scheduler import Scheduler
from exacta.ports.shared import BrokerSeen
from exacta.readmodel.cluster import BrokerStatus, ClusterStatus
from exacta.server.cluster.belongings import Belongings
from exacta.server.cluster.figures import ClusterFigures
from exacta.server.cluster.nodes import LIVES_MS, NAMED_S, AnnouncedCluster, about_of


class Operations:
    """One for each broker, whatever its role; `move` lets another broker lead."""

    def __init__(
        self,
        cluster: AnnouncedCluster,
        has: Belongings,
        figures: ClusterFigures,
        scheduler: Scheduler,
        move: Callable[[], object],
    ) -> None:
        self._cluster, self._has, self._figures = cluster, has, figures
        self._scheduler, self._move = scheduler, move

    def status(self) -> ClusterStatus:
        """See `Cluster`."""
        own, seen, figures = self._cluster.node_id, self._cluster.brokers, self._figures
        found = self._has.leader(own)
        leader = None if found is None else found.node_id
        end = max([self._has.position, *(each.broker.position for each in seen)])
        return ClusterStatus(
            answered_by=own,
            role=figures.words,
            is_shared=True,
            leader=leader,
            epoch=0 if found is None else found.epoch,
            tail_bytes=figures.tail_bytes,
            tail_ms=int(figures.tail_seconds * 1000),
            catalog=self._has.catalog,
            brokers=tuple(self._broker(each, leader, end) for each in seen),
        )

    def _broker(self, seen: BrokerSeen, leader: int | None, end: int) -> BrokerStatus:
        broker, about = seen.broker, about_of(seen.broker)
        is_me = broker.node_id == self._cluster.node_id
        position = self._has.position if is_me else broker.position
        since_ms = int(self._figures.seconds_since(position) * 1000)
        return BrokerStatus(
            node_id=broker.node_id,
            leads=broker.node_id == leader,
            is_live=seen.age_ms < LIVES_MS,
            rack=about.rack,
            addresses={name: _address(*each) for name, each in about.addresses.items()},
            announced_ms_ago=seen.age_ms,
            position=position,
            behind_bytes=end - position,
            behind_ms=max(0, since_ms - seen.age_ms),
            catalog=self._has.catalog if is_me else broker.catalog,
            release=about.release,
        )

    def move(self, epoch: int, to: int | None) -> Unmovable | None:
        """See `Cluster`."""
        journal, own = self._has.journal, self._cluster.node_id
        if journal is None:
            return Unmovable.NOT_LEADING
        if journal.epoch != epoch or to == own:
            return None  # the lead has moved since, or it is where it is wanted
        others = [each.node_id for each in self._cluster.nodes if each.node_id != own]
        if not others:
            return Unmovable.ALONE
        if to is not None and to not in others:
            return Unmovable.UNKNOWN
        if to is None:
            self._scheduler.call_soon(self._move)  # the answer goes out before
        else:
            self._cluster.name_successor(epoch, to)
            self._scheduler.call_later(NAMED_S, self._move)  # all leave the lead to that one by then
        return None


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
