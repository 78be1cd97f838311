"""Two brokers over one log: one leads it, the other follows without a lag, on the same event loop."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from exacta.config.options import configure
from exacta.front.doors import Door, Endpoint
from exacta.kafka.connection import KafkaClientConnection
from exacta.kafka.shared import KafkaShared
from exacta.ports.cluster import Node, Unmovable
from exacta.ports.log import Log
from exacta.readmodel.cluster import ClusterStatus
from exacta.server.assembly import assemble_broker
from tests.kafka.wire import Front, Wire, front

DOOR = "PLAINTEXT"
LEADER, FOLLOWER = 1, 2


class Known:
    """A cluster as one of its brokers knows it; see `exacta.ports.cluster.Cluster`."""

    def __init__(self, node_id: int, leader: Node | None, nodes: Sequence[Node]) -> None:
        self.node_id = node_id
        self.leader = leader
        self.nodes = nodes

    @property
    def leads(self) -> bool:
        return self.leader is not None and self.leader.node_id == self.node_id

    def status(self) -> ClusterStatus:
        leader = None if self.leader is None else self.leader.node_id
        return ClusterStatus(answered_by=self.node_id, role="follower", is_shared=True, leader=leader)

    def move(self, epoch: int, to: int | None) -> Unmovable | None:
        raise AssertionError("a follower was asked to move the lead")

    def on_change(self, changed: Callable[[], None]) -> None:
        pass


class Followed:
    """A log that is followed: it shows what the leader's shows, and takes no commands."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.fetches = 0
        """The number of fetches that were begun."""

        self.catching_up: list[Callable[[], None]] | None = None
        """The callbacks that wait, while it does not catch up; None: it is never behind."""

    def catch_up(self, done: Callable[[], None]) -> None:
        if self.catching_up is None:
            done()
        else:
            self.catching_up.append(done)

    def fetch(self, *arguments: Any) -> None:
        self.fetches += 1
        self._log.fetch(*arguments)

    def submit(self, *_: Any, **__: Any) -> int:
        raise AssertionError("a front has submitted commands to a follower")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class Follower:
    """A broker that follows the log of a running one, which leads from now on."""

    def __init__(self, leader: Front, racks: tuple[str | None, str | None], options: dict[str, Any]) -> None:
        self.leading = leader
        self._wires: list[Wire] = []
        self._connections: set[KafkaClientConnection] = set()
        self._loop = leader.loop
        self._listener = self.on_loop(self._listen)
        self.address = self._listener.sockets[0].getsockname()
        self.nodes = [
            Node(LEADER, racks[0], {DOOR: leader.address}),
            Node(FOLLOWER, racks[1], {DOOR: self.address}),
        ]
        self.cluster = Known(FOLLOWER, self.nodes[0], self.nodes)
        leader.context.cluster = Known(LEADER, self.nodes[0], self.nodes)
        self._log = Followed(leader.engine)
        self.context = assemble_broker(
            cast("Log", self._log), configure(options), cluster_id="a-cluster", cluster=self.cluster
        )
        self._shared = KafkaShared(self.context)

    def hold_back(self) -> None:
        """Let it not catch up, until `go_on`."""
        self._log.catching_up = []

    @property
    def held_back(self) -> int:
        """The number of requests that wait until it has caught up."""
        return len(self._log.catching_up or ())

    def go_on(self) -> None:
        """Let it catch up."""

        async def call() -> None:
            held, self._log.catching_up = self._log.catching_up or [], None
            for done in held:
                done()

        self.on_loop(call)

    @property
    def fetches_served(self) -> int:
        """The number of fetches that the follower has served."""
        return self._log.fetches

    def connect(self) -> Wire:
        """Return a new connection to the follower."""
        self._wires.append(Wire(self.address))
        return self._wires[-1]

    def on_loop(self, call: Callable[[], Any]) -> Any:
        """Run a coroutine function on the loop of both."""
        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(10)

    def close(self) -> None:
        for wire in self._wires:
            wire.socket.close()
        self.on_loop(self._close)

    async def _listen(self) -> asyncio.Server:
        return await self._loop.create_server(self._connection, "127.0.0.1", 0)

    async def _close(self) -> None:
        self._listener.close()
        for connection in list(self._connections):
            connection.abort()

    def _connection(self) -> KafkaClientConnection:
        door = Door(front="kafka", name=DOOR, endpoint=Endpoint(*self.address))
        return KafkaClientConnection(self._shared, door, self._loop, self._let_in, self._connections.discard)

    def _let_in(self, connection: KafkaClientConnection) -> bool:
        self._connections.add(connection)
        return True


@contextmanager
def following(racks: tuple[str | None, str | None] = (None, None), **options: Any) -> Iterator[Follower]:
    """Run a leader, and its follower, with racks of their own."""
    with front(node_id=LEADER, **options) as leader:
        follower = Follower(leader, racks, {"node_id": FOLLOWER, **options})
        try:
            yield follower
        finally:
            follower.close()
