"""The making of what a role of a broker needs: the replica that follows, the engine that leads, and their service."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from exacta.adapters.clock import Clock
from exacta.config.configuration import Configuration
from exacta.config.dynamic import DynamicConfiguration
from exacta.engine.engine import Engine, EngineFailed
from exacta.engine.replica import Replica
from exacta.front.hosts import share_beyond_loopback, share_of
from exacta.ports.cluster import Cluster
from exacta.ports.following import LedJournal
from exacta.records.record_format import KafkaRecordFormat
from exacta.release import release
from exacta.security.first_user import FirstUserToken
from exacta.server.access import require_authorizer
from exacta.server.assembly import assemble_broker, assemble_engine, upkeep_schedule
from exacta.server.cluster.addresses import addresses_of
from exacta.server.cluster.belongings import Belongings
from exacta.server.cluster.figures import ClusterFigures
from exacta.server.cluster.founding import LEVEL
from exacta.server.cluster.nodes import About, AnnouncedCluster
from exacta.server.cluster.opening import Opened
from exacta.server.cluster.operations import Operations
from exacta.server.connections import Connections
from exacta.server.first_user import first_user_token
from exacta.server.host import Host
from exacta.server.journals import SharedPlace
from exacta.server.logins import logins_of
from exacta.server.progress import Progress
from exacta.server.reception import Reception
from exacta.server.seams import Seams
from exacta.server.serving import Serving


class Making(Struct, frozen=True, kw_only=True):
    """The parts of a server that all of its roles have in common."""

    loop: asyncio.AbstractEventLoop
    configuration: Configuration
    data: Path
    clock: Clock
    reception: Reception
    connections: Connections
    seams: Seams

    def place(self, instance: str) -> SharedPlace:
        """Return the place of what the cluster shares, for this start of the broker."""
        return SharedPlace(
            directory=self.data,
            scheduler=self.loop,
            call_soon=self._call_soon_threadsafe,
            configuration=self.configuration,
            instance=instance,
        )

    def cluster(
        self, instance: str, *, touched: Callable[[bool], None], refused: Callable[[str], None]
    ) -> AnnouncedCluster:
        """Return the cluster as this broker sees it, once its doors are bound. Raises ServerError."""
        addresses, rack = addresses_of(self.reception.doors), self.configuration.broker_rack or None
        return AnnouncedCluster(
            self.configuration.node_id,
            instance,
            About(addresses, rack=rack, release=release(), format=LEVEL),
            self.loop,
            touched=touched,
            refused=refused,
        )

    def figures(self, cluster: AnnouncedCluster, has: Belongings, move: Callable[[], object]) -> ClusterFigures:
        """Return the figures that operators are shown, and let the cluster answer and obey operators."""
        found = ClusterFigures(cluster, has, self.loop.time)
        cluster.operated(Operations(cluster, has, found, self.loop, move))
        return found

    def host(self, progress: Progress) -> Host:
        """Return the server as its fronts see it."""
        return Host(
            configuration=self.configuration,
            data=self.data,
            loop=self.loop,
            doors=self.reception.doors,
            register=self.connections.register,
            forget=self.connections.forget,
            progress=progress,
            admission=self.connections.admission,
            connections=self.connections,
        )

    def _call_soon_threadsafe(self, callback: Callable[..., object], *args: object) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(callback, *args)

    def replica(self, opened: Opened, on_failure: Callable[[EngineFailed], None]) -> Replica:
        """Return the log as a follower has it, which it begins to follow."""
        return Replica(
            opened.follower,
            KafkaRecordFormat(),
            scheduler=self.loop,
            clock=self.clock.now_ms,
            wait_clock=self.clock.wait_ms,
            limits=self.configuration.limits(),
            on_failure=on_failure,
            replayed=opened.replayed,
        )

    def engine(self, replica: Replica, journal: LedJournal, on_failure: Callable[[EngineFailed], None]) -> Engine:
        """Return the engine that goes on from a replica, which is used no more; it takes the lead of the log."""
        clock, recovered = self.clock, replica.hand_over(journal)
        in_force = DynamicConfiguration(self.configuration, lambda: recovered.state.broker_configs)
        return assemble_engine(
            journal,
            self.loop,
            clock=clock.now_ms,
            wait_clock=clock.wait_ms,
            limits=self.configuration.limits(),
            on_failure=on_failure,
            schedule=upkeep_schedule(self.configuration, record_clock=clock.least_ms, now=lambda: in_force.now),
            recovered=recovered,
            node_id=self.configuration.node_id,
        )

    def serving(self, log: Engine | Replica, opened: Opened, cluster: Cluster) -> tuple[Serving, FirstUserToken | None]:
        """Return the service over a log, and the token that makes the first user, if one is needed.

        Raises ServerError where the log must not be served by these options.
        """
        configuration, advice, doors, wall_ms = self.configuration, log.advice, self.reception.doors, self.clock.wall_ms
        state, founded, found = opened.replayed.state, opened.founded, opened.for_logins
        require_authorizer(configuration, state, self.data, doors)
        first_user = first_user_token(self.data, advice, configuration, state, doors, founded.first_user_token)
        log.owner_of = share_of if self.seams.loopback_has_share else share_beyond_loopback
        broker = assemble_broker(
            log,
            configuration,
            logins=None if found is None else logins_of(found, configuration, advice, wall_ms, first_user),
            cluster_id=founded.cluster_id,
            wall_clock=wall_ms,
            cluster=cluster,
        )
        token_keys = None if found is None else found.token_keys
        return Serving(broker, self.connections, self.reception, self.loop, token_keys), first_user
