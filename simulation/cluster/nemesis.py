"""The faults of a world of several brokers, and their times.

Each seed plays with some kinds and leaves others out, as `simulation.nemesis` does.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Protocol

from simulation.cluster.storage import SharedStorage
from simulation.loop import SimulatedLoop
from simulation.trace import Trace

PAUSES = (0.3, 1.5, 10.0, 60.0)
"""The longest pause of a broker in seconds, by world."""
CUTS = (0.5, 3.0, 15.0, 60.0)
SHORT_SECONDS = 3.0
SHARES = (0.1, 0.5, 1.0)


class Broker(Protocol):
    """A broker as the nemesis sees it."""

    def start(self) -> None:
        """Begin a process."""

    def kill(self) -> None:
        """End the process at once."""

    def pause(self, seconds: float) -> None:
        """Stop the process, and let it go on after so long."""


class Nemesis:
    """Injects faults until it is told to stop."""

    def __init__(
        self,
        chance: random.Random,
        loop: SimulatedLoop,
        trace: Trace,
        storage: SharedStorage,
        brokers: Mapping[int, Broker],
        jump: Callable[[int], None],
    ) -> None:
        """`jump` moves the clock of a broker."""
        self._chance = chance
        self._loop = loop
        self._trace = trace
        self._storage = storage
        self._brokers = brokers
        self._jump = jump
        self._down: set[int] = set()
        kinds: dict[str, Callable[[int], None]] = {
            "kill": self._kill,
            "machine gone": self._lose_machine,
            "pause": self._pause,
            "cut": self._cut,
            "slow": lambda node_id: self._for_a_while(storage.slow, node_id, chance.choice([0.05, 1.0, 6.0])),
            "lose messages": self._lose_messages,
            "store fails": lambda node_id: self._for_a_while(
                storage.fail_store, node_id, chance.choice([0.1, 0.5, 1.0])
            ),
            "clock": jump,
            "database restarts": lambda _: storage.restart_database(chance.choice([0.0, chance.uniform(0.0, 5.0)])),
            "failover": self._fail_over,
            "standby away": lambda _: storage.keep_standby_away(chance.uniform(0.0, 12.0)),
        }
        self._kinds = {kind: play for kind, play in kinds.items() if chance.random() < 0.5}
        self._mean_seconds = chance.choice([0.3, 1.0, 3.0])
        self._longest_pause = chance.choice(PAUSES)
        self._longest_cut = chance.choice(CUTS)

    async def run(self, seconds: float) -> None:
        """Inject faults for this long; then let all be well."""
        end = self._loop.time() + seconds
        while self._kinds and (wait := self._chance.expovariate(1 / self._mean_seconds)) < end - self._loop.time():
            await asyncio.sleep(wait)
            kind = self._chance.choice(sorted(self._kinds))
            self._kinds[kind](self._chance.choice(sorted(self._brokers)))
        await asyncio.sleep(max(0.0, end - self._loop.time()))
        self._trace.note("all is well")
        for node_id in self._brokers:
            self._storage.mend(node_id)

    def _kill(self, node_id: int) -> None:
        if node_id in self._down:
            return
        self._trace.fault("kill", node_id)
        self._end(node_id)

    def _end(self, node_id: int) -> None:
        self._down.add(node_id)
        self._brokers[node_id].kill()
        self._loop.call_later(self._chance.choice([0.05, self._chance.uniform(0.0, 20.0)]), self._start, node_id)

    def _start(self, node_id: int) -> None:
        self._down.discard(node_id)
        self._brokers[node_id].start()

    def _lose_machine(self, node_id: int) -> None:
        """End a process whose kernel says nothing to the database any more; its machine comes back a while later."""
        if node_id in self._down:
            return
        self._trace.fault("machine gone", node_id)
        self._storage.cut(node_id, requests=True, replies=True, store=True)
        self._end(node_id)
        self._loop.call_later(self._chance.uniform(0.0, 10.0), self._storage.mend, node_id)

    def _pause(self, node_id: int) -> None:
        seconds = self._chance.uniform(0.0, self._longest_pause)
        self._trace.fault("pause", node_id, seconds)
        self._brokers[node_id].pause(seconds)

    def _cut(self, node_id: int) -> None:
        chance = self._chance
        requests, replies = chance.choice([(True, True), (True, False), (False, True), (False, False)])
        store = not (requests or replies) or chance.random() < 0.3
        self._storage.cut(node_id, requests=requests, replies=replies, store=store)
        self._loop.call_later(chance.uniform(0.0, self._longest_cut), self._storage.mend, node_id)

    def _for_a_while(self, play: Callable[[int, float], None], node_id: int, much: float) -> None:
        play(node_id, much)
        self._loop.call_later(self._chance.uniform(0.0, 10.0), self._storage.mend, node_id)

    def _lose_messages(self, node_id: int) -> None:
        requests, replies = self._chance.choice([(1, 0), (0, 1), (0, 1), (2, 2)])
        self._storage.lose_messages(node_id, requests=requests, replies=replies)

    def _fail_over(self, _: int) -> None:
        seconds = self._chance.choice([0.05, self._chance.uniform(0.0, SHORT_SECONDS)])
        old_lives = self._chance.choice([0.0, self._chance.uniform(0.0, 20.0)])
        self._storage.fail_over(seconds, old_lives_seconds=old_lives)
