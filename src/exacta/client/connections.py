"""The connections of one client: one to a bootstrap server, one to each broker, and further ones beside these.

This module owns the connections and the order of the bootstrap servers. `topology.py` says where the brokers are.

A broker can be away in two ways: it refuses connections, or it takes them and says nothing. So if any of several
brokers will do, each is given only a share of the time, and one that failed comes last the next time.
"""

import contextlib
from typing import Any

from exacta.client.connection import Connection
from exacta.client.deadline import Deadline, for_one_request
from exacta.client.errors import ConnectionLost, UnknownBootstrap, UnknownHost
from exacta.client.security import Cluster
from exacta.client.topology import Topology
from exacta.client.waiting import Waiting
from exacta.protocol.kafka.schema import Message

CONNECTION_SETUP_TIMEOUT_MS = 10_000
"""A connection must be up and logged in within this time, as with the Java client's
`socket.connection.setup.timeout.ms`."""


class Connections:
    """Connections to the brokers of `topology`, and to `seeds`, where nothing is known yet."""

    def __init__(self, cluster: Cluster, seeds: list[tuple[str, int]], topology: Topology) -> None:
        self._cluster = cluster
        self._seeds = list(seeds)
        self._topology = topology
        self._seed: Connection | None = None
        self._brokers: dict[int, Connection] = {}
        self._lanes: dict[tuple[int, int], Connection] = {}
        self._spare: dict[int, Connection] = {}
        self._waiting = Waiting()

    def close(self) -> None:
        """Close all; they may be used again."""
        for connection in (*self._brokers.values(), *self._lanes.values(), *self._spare.values()):
            connection.close()
        self._brokers.clear()
        self._lanes.clear()
        self._spare.clear()
        if self._seed is not None:
            self._seed.close()
            self._seed = None
        self._waiting.over()

    def drop(self, node_id: int) -> None:
        """Close the connections to a broker that is elsewhere now."""
        stale = [self._brokers.pop(node_id, None), self._spare.pop(node_id, None)]
        stale += [self._lanes.pop(lane) for lane in list(self._lanes) if lane[0] == node_id]
        for connection in stale:
            if connection is not None:
                connection.close()

    def open(self, node_id: int, deadline: Deadline) -> Connection:
        """Open a connection to a broker; raises `ConnectionLost`."""
        if node_id not in self._topology.brokers:
            raise ConnectionLost(f"broker {node_id} is not there now")
        host, port = self._topology.brokers[node_id]
        return self._connect(host, port, self._setup_deadline(deadline), node_id)

    def lease(self, node_id: int, deadline: Deadline) -> Connection:
        """Return a further connection to a broker, the caller's until `release`; raises `ConnectionLost`."""
        spare = self._spare.pop(node_id, None)
        if spare is not None:
            if spare.is_idle():
                return spare
            spare.close()
        return self.open(node_id, deadline)

    def release(self, node_id: int, connection: Connection) -> None:
        """Take a leased connection back: keep one for the next `lease`, unless an answer is still to come on it."""
        here = "{}:{}".format(*self._topology.brokers.get(node_id, ("", 0)))
        if node_id in self._spare or connection.address != here or not connection.is_idle():
            connection.close()
        else:
            self._spare[node_id] = connection

    def broker(self, node_id: int, deadline: Deadline) -> Connection:
        """Return the connection to a broker; raises `ConnectionLost` where it cannot be reached."""
        connection = self._brokers.get(node_id)
        if connection is None or connection.closed:
            self._brokers[node_id] = connection = self.open(node_id, deadline)
        return connection

    def lane(self, node_id: int, index: int, deadline: Deadline) -> Connection:
        """Return the further connection number `index` to a broker, kept for the next time."""
        connection = self._lanes.get((node_id, index))
        if connection is None or connection.closed:
            connection = self._lanes[node_id, index] = self.open(node_id, deadline)
        assert not connection.in_flight
        return connection

    def seed(self, deadline: Deadline) -> Connection:
        """Return the connection to a bootstrap server; raises the last `ConnectionLost` where none can be reached.

        Raises `UnknownBootstrap` if no name of theirs resolves and this client has reached no broker yet, as the Java
        client does: then a name is wrong. Later it is a name service that has a bad moment.
        """
        if self._seed is not None and not self._seed.closed:
            return self._seed
        last: ConnectionLost | None = None
        unknown: list[UnknownHost] = []
        for tried, (host, port) in enumerate(list(self._seeds)):
            try:
                self._seed = self._connect(host, port, self._setup_deadline(deadline, len(self._seeds) - tried))
            except ConnectionLost as lost:
                self._seeds.append(self._seeds.pop(0))
                last = lost
                if isinstance(lost, UnknownHost):
                    unknown.append(lost)
            else:
                return self._seed
        if len(unknown) == len(self._seeds) and not self._topology.brokers:
            self._waiting.over()
            raise UnknownBootstrap("; ".join(map(str, unknown))) from last
        raise last or ConnectionLost("no bootstrap server")

    def ask_anyone(self, request: Message, deadline: Deadline, first: int | None = None) -> Any:
        """Ask the `first` broker, the seed connection, then every broker once; raise the last `ConnectionLost`."""
        others = list(self._topology.brokers)
        if first is not None:
            share = _share(deadline, len(others) + 2)
            with contextlib.suppress(ConnectionLost):
                return self.broker(first, share).call(request, for_one_request(share))
        try:
            share = _share(deadline, len(others) + 1)
            return self.seed(share).call(request, for_one_request(share))
        except ConnectionLost as lost:
            self._seed = None
            last = lost
        for asked, node_id in enumerate(others):
            try:
                share = _share(deadline, len(others) - asked)
                return self.broker(node_id, share).call(request, for_one_request(share))
            except ConnectionLost as lost:
                last = lost
        raise last

    def _setup_deadline(self, deadline: Deadline, candidates: int = 1) -> Deadline:
        """Return the deadline of a connection's setup, where this many brokers are left to try until `deadline`."""
        share_ms = deadline.remaining_s * 1000 / candidates
        return deadline.part(min(share_ms, CONNECTION_SETUP_TIMEOUT_MS))

    def _connect(self, host: str, port: int, deadline: Deadline, node_id: int | None = None) -> Connection:
        address = f"{host}:{port}"
        self._waiting.trying(address, deadline)
        try:
            connection = Connection(host, port, cluster=self._cluster, deadline=deadline)
        except ConnectionLost as lost:
            if node_id is not None and (host, port) not in self._seeds:  # nobody here has written that address
                lost = type(lost)(f"{lost}; the cluster itself gives that address for broker {node_id}")
            self._waiting.failed(address, lost)
            raise lost from lost.__cause__
        except BaseException:
            self._waiting.over()
            raise
        self._waiting.over()
        return connection


def _share(deadline: Deadline, candidates: int) -> Deadline:
    """Return the deadline of one of `candidates` that are asked one after the other until `deadline`."""
    return deadline.part(deadline.remaining_s * 1000 / candidates)
