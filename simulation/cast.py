"""The clients of a world: who plays in it, and the lives of their instances.

Owns who is there, and what is running. A client that crashes ends at the await where it is; another instance of it
begins later. Two of one client at once are a zombie and its successor.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from math import inf
from typing import Any, NamedTuple

from simulation.broker import Broker
from simulation.chance import dice
from simulation.clients.admin import administrate
from simulation.clients.connection import Connection
from simulation.clients.copying import copying, draw_quota
from simulation.clients.forging import forge
from simulation.clients.handles import handles
from simulation.clients.joint import joint_pipeline
from simulation.clients.keeper import KEEPER, has_founder, has_keeper, keep, keep_and_found
from simulation.clients.keyed_messages import keyed_messages
from simulation.clients.leading import lead
from simulation.clients.non_durable import non_durable
from simulation.clients.offsets import keep_offsets
from simulation.clients.operator import operate
from simulation.clients.pipeline import INPUTS, OUTPUTS, consumer_pipeline, moving_pipeline, pipeline
from simulation.clients.plain_calls import PlainCalls
from simulation.clients.pulsar import pulsar_pipeline
from simulation.clients.reading import watch
from simulation.clients.subscriptions import subscriptions
from simulation.clients.surroundings import Surroundings
from simulation.clients.transfers import idempotent, transfers
from simulation.history import History, Place
from simulation.late_requests import Late
from simulation.loop import SimulatedLoop
from simulation.network import Network
from simulation.policies import draw_input
from simulation.trace import Trace

PLAIN: list[Place] = [("plain", 0), ("plain", 1)]
SHORT: list[Place] = [("short", 0)]
KEYED: list[Place] = [("keyed", 0), ("keyed", 1)]
AGING: list[Place] = [("aging", 0)]

Program = Callable[[Surroundings], Coroutine[Any, Any, bool]]


class _Client(NamedTuple):
    program: Program
    places: list[Place]
    version: int


class Cast:
    """The clients of one world."""

    def __init__(
        self,
        seed: int,
        chance: random.Random,
        loop: SimulatedLoop,
        trace: Trace,
        broker: Broker,
        network: Network,
        late: Late,
        history: History,
        now_ms: Callable[[], int],
        complain: Callable[[str], None],
        has_failed: Callable[[], bool],
    ) -> None:
        self.is_over = False
        """True if clients are to end what they have begun, and to begin nothing more."""
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._seed = seed
        self._chance = chance
        self._loop = loop
        self._trace = trace
        self._broker = broker
        self._network = network
        self._hook = late.hook
        self._history = history
        self._now_ms = now_ms
        self._complain = complain
        self._has_failed = has_failed
        self._instances: Counter[str] = Counter()
        self._connections: dict[str, Connection] = {}
        self.clients = self._drawn()

    def _drawn(self) -> dict[str, _Client]:
        chance = self._chance
        clients: dict[str, _Client] = {"admin": _Client(administrate, [], 0)}
        for number in range(chance.randint(1, 3)):
            places = [*INPUTS, *chance.choice([[], PLAIN, SHORT, AGING, KEYED, KEYED])]
            clients[f"writer{number}"] = _Client(transfers, places, chance.choice([1, 2]))
        # The protocol of the pipelines' group: KIP-848's, the classic one, or the one after the other.
        protocol = dice(self._seed, "protocol").random()
        pipe = consumer_pipeline if protocol < 1 / 3 else pipeline if protocol < 5 / 6 else moving_pipeline
        for number in range(chance.randint(0, 2)):
            clients[f"pipe{number}"] = _Client(pipe, [], chance.choice([1, 2]))
        if chance.random() < 0.7:
            clients["plain0"] = _Client(idempotent, [*PLAIN, *chance.choice([AGING, KEYED])], 0)
        clients["committed"] = _Client(watch, [*INPUTS, *OUTPUTS, *PLAIN, *KEYED, *AGING], 2)
        if chance.random() < 0.5:
            clients["uncommitted"] = _Client(watch, [*INPUTS, *PLAIN, *KEYED, *AGING], 1)
        if dice(self._seed, "forger").random() < 1 / 8:
            clients["forger"] = _Client(forge, [*INPUTS, *PLAIN, *KEYED], 0)
        if dice(self._seed, "handles").random() < 0.5:
            clients["handles0"] = _Client(handles, [*INPUTS, *PLAIN], 0)
        if dice(self._seed, "subscriptions").random() < 0.5:
            clients["subscriptions0"] = _Client(subscriptions, [*INPUTS, *PLAIN, *AGING, *AGING, *AGING], 0)
        if dice(self._seed, "non-durable").random() < 0.3:
            clients["reader0"] = _Client(non_durable, [*INPUTS, *PLAIN, *AGING], 0)
        if dice(self._seed, "leaders").random() < 1 / 8:
            clients["leader0"] = clients["leader1"] = _Client(lead, PLAIN[:1], 0)
        if dice(self._seed, "pulsar").random() < 0.25:
            clients["pulsar0"] = _Client(self._pulsar_pipeline, [], 0)
        messages = dice(self._seed, "messages")
        if messages.random() < 0.3:
            places = [*KEYED, *messages.choice([[], [], PLAIN, INPUTS])]
            clients["messages0"] = _Client(self._keyed_messages, places, 0)
        if dice(self._seed, "producer").random() < 0.15:
            clients["copier0"] = _Client(self._copying, [], 0)
        both = dice(self._seed, "joint")
        if both.random() < 0.3:
            clients["joint0"] = _Client(self._joint_pipeline, [*INPUTS, *PLAIN], both.choice([1, 2]))
        if dice(self._seed, "backlogs", "clients").random() < 1 / 3:
            clients["aging0"] = _Client(idempotent, AGING, 0)
            clients["behind0"] = _Client(subscriptions, AGING, 0)
        if self._history.retention_seconds < inf:
            clients["offsets0"] = _Client(keep_offsets, [], dice(self._seed, "offsets").choice([1, 2]))
        if dice(self._seed, "operator").random() < 0.2:
            clients["operator0"] = _Client(operate, [], 0)
        if has_keeper(self._seed):
            clients[KEEPER] = _Client(keep_and_found if has_founder(self._seed) else keep, [], 0)
        return clients

    async def _pulsar_pipeline(self, here: Surroundings) -> bool:
        return await pulsar_pipeline(here, self._network, draw_input(dice(self._seed, "pulsar", "input")))

    async def _keyed_messages(self, here: Surroundings) -> bool:
        return await keyed_messages(here, self._network)

    async def _copying(self, here: Surroundings) -> bool:
        return await copying(here, self._network, draw_quota(dice(self._seed, "producer", "quota")))

    async def _joint_pipeline(self, here: Surroundings) -> bool:
        return await joint_pipeline(here, self._network)

    def surroundings(self, name: str, places: list[Place], version: int) -> Surroundings:
        """Make what one more instance of a client knows."""
        self._instances[name] += 1
        instance = self._instances[name]
        chance = dice(self._seed, name, instance)
        connection = Connection(self._loop, self._network, chance, name, self._hook(name))
        self._connections[f"{name}/{instance}"] = connection
        return Surroundings(
            name,
            instance,
            chance,
            connection,
            Connection(self._loop, self._network, chance, name),
            self._history,
            self._now_ms,
            lambda: self.is_over or self._has_failed(),
            lambda: self._instances[name] > instance,
            places,
            version,
            chance.choice([4_000, 15_000, 40_000]),
            self._loop,
            PlainCalls(self._loop, self._broker, dice(self._seed, name, instance, "calls")),
        )

    def begin(self, name: str) -> None:
        """Let one more instance of a client live."""
        client = self.clients[name]
        here = self.surroundings(name, client.places, client.version)
        self._trace.note("client", here.writer)

        async def live() -> None:
            goes_on = await client.program(here)
            self._trace.note("client ends", here.writer)
            del self.tasks[here.writer]
            if goes_on and not self.is_over:
                self.begin(name)

        task = self.tasks[here.writer] = self._loop.create_task(live())
        task.add_done_callback(self._look_at)

    def _look_at(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._complain(f"a client failed: {type(error).__name__}: {error}")

    def _running(self) -> list[str]:
        return [name for name in self.tasks if name.split("/")[0] in self.clients]

    def crash_one(self) -> None:
        """Let a client end where it is; it begins again later."""
        running = [name for name in self._running() if not name.startswith("admin")]
        if not running or self.is_over:
            return
        name = self._chance.choice(running)
        self._trace.fault("client crash", name)
        self.tasks.pop(name).cancel()
        self._connections[name].drop()
        client = name.split("/")[0]
        self._loop.call_later(self._chance.uniform(0.0, 10.0), self._begin_again, client)

    def _begin_again(self, client: str) -> None:
        if not self.is_over:
            self.begin(client)

    def begin_a_second(self) -> None:
        """Begin another instance while one still runs: the older one is a zombie then."""
        running = [name for name in self._running() if name.startswith(("writer", "pipe", "joint"))]
        if running and not self.is_over:
            name = self._chance.choice(running).split("/")[0]
            self._trace.fault("second instance", name)
            self.begin(name)
