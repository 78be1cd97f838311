"""Several brokers in one process, over a database and an object store in memory, with real doors for real clients."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from exacta.adapters.memory import MemoryDatabase, MemoryLedger, MemoryObjects
from exacta.adapters.memory.wire import DatabaseWire
from exacta.adapters.shared.shared_log import Witness
from exacta.config.options import configure
from exacta.front.doors import Door, Endpoint
from exacta.server.cluster.roles import BrokerRole
from exacta.server.cluster.server import ClusterServer
from exacta.server.event_loop import new_event_loop
from exacta.server.journals import OpenShared, SharedPlace
from exacta.server.seams import Seams
from exacta.server.shared_stores import FollowedStore
from simulation.disk.in_place import InPlace

SECONDS = 20
POSTGRES = "postgresql://nobody@127.0.0.1/nowhere"
"""An address that is never used: the database is in memory."""


class Brokers:
    """The brokers by node id; everything that touches one runs on the one loop, by `on_loop` or `run`."""

    def __init__(
        self,
        folder: Path,
        options: Mapping[str, Any] | None = None,
        fronts: tuple[str, ...] = (),
        *,
        login: bool = False,
    ) -> None:
        """`fronts` are those beside Kafka's that have a door; with `login` Kafka clients log in."""
        self.login = login
        self.folder = folder
        self.options = {"postgres": POSTGRES, **(options or {})}
        self.fronts = ("kafka", *fronts)
        self.loop = new_event_loop()
        self.database = MemoryDatabase(self.loop, lambda: int(time.time() * 1000))
        self.objects = MemoryObjects()
        self.servers: dict[int, ClusterServer] = {}
        self.wires: dict[int, DatabaseWire] = {}
        self.is_cut_off = False
        """True: brokers that start cannot reach the database."""
        self._ports: dict[tuple[int, str], int] = {}
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()

    # --- the loop -----------------------------------------------------------------------------------------------------

    def run(self, work: Any) -> Any:
        """Run a coroutine on the loop, and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(SECONDS)

    def on_loop(self, call: Callable[[], Any]) -> Any:
        """Call something on the loop, and return what it returns."""

        async def work() -> Any:
            return call()

        return self.run(work())

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Look on the loop until something holds."""

        async def look() -> None:
            deadline = self.loop.time() + SECONDS
            while not holds():
                assert self.loop.time() < deadline, what
                await asyncio.sleep(0.005)

        self.run(look())

    # --- the brokers --------------------------------------------------------------------------------------------------

    def start(self, node_id: int, *, is_second: bool = False, **options: Any) -> ClusterServer:
        """Start a broker, with the ports that a broker of this id had before, unless that one is there still."""
        configuration = configure({**self.options, "node.id": node_id, **options})
        ports = {} if is_second else self._ports
        doors = [
            Door(
                front=each,
                name=_NAMES[each],
                endpoint=Endpoint("127.0.0.1", ports.get((node_id, each), 0)),
                login=self.login and each == "kafka",
            )
            for each in self.fronts
        ]
        if not is_second:
            self.wires[node_id] = DatabaseWire(self.loop)
            if self.is_cut_off:
                self.on_loop(self.wires[node_id].cut)
        folder = self.folder / (f"another {node_id}" if is_second else str(node_id))
        seams = Seams(shared=self._share)

        async def make() -> ClusterServer:
            server = ClusterServer(self.loop, configuration, folder, doors, seams)
            await server.open_in_sight()
            await server.start()
            return server

        server: ClusterServer = self.run(make())
        for door in server.reception.doors:
            self._ports[node_id, door.front] = door.endpoint.port
        self.servers[node_id] = server
        return server

    def _share(self, place: SharedPlace) -> OpenShared:
        witness = Witness()

        async def open_store() -> FollowedStore:
            wire = self.wires[place.configuration.node_id]
            return FollowedStore(place, witness, MemoryLedger(self.database, self.loop, wire), self.objects, InPlace)

        return open_store

    def kill(self, node_id: int) -> None:
        """End a broker as `kill -9` would."""
        self.on_loop(self.servers.pop(node_id).abandon)

    def stop(self, node_id: int) -> None:
        """Stop a broker cleanly."""
        self.run(self.servers.pop(node_id).stop())

    def until_all_have_followed(self) -> None:
        """Wait until every broker knows all that the leader has appended."""
        leader = self.servers[self.leader()]
        self.until(
            lambda: {each.position for each in self.servers.values()} == {leader.position}, "not all have followed"
        )

    def leader(self) -> int:
        """Wait until one broker leads, and return its id."""
        self.until(lambda: len(self._leading()) == 1, "nobody leads")
        [leader] = self.on_loop(self._leading)
        return int(leader)

    def followers(self) -> list[int]:
        """Wait until one broker leads and the others follow, and return these."""
        leader = self.leader()
        others = [each for each in self.servers if each != leader]
        self.until(lambda: all(self.servers[each].role is BrokerRole.FOLLOWING for each in others), "not all follow")
        return others

    def _leading(self) -> list[int]:
        return [node_id for node_id, each in self.servers.items() if each.role is BrokerRole.LEADING]

    def address(self, node_id: int, front: str = "kafka") -> str:
        """Return host and port of a door."""
        return f"127.0.0.1:{self._ports[node_id, front]}"

    # --- the end ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> "Brokers":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for node_id in [*self.servers]:
            self.kill(node_id)
        self.run(asyncio.sleep(0.01))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


_NAMES = {"kafka": "PLAINTEXT", "pulsar": "PULSAR", "web": "WEB"}
