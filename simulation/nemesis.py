"""The faults of a world, and their times.

Each seed plays with some kinds of faults and leaves others out (swarm testing): what is frequent in one world never
happens in the next, so that rare combinations come up in some.
"""

import asyncio
import random
from collections.abc import Callable

from simulation.broker import Broker
from simulation.clock import WallClock
from simulation.disk.faults import FAILING_CALLS, DiskFaults
from simulation.late_requests import Late
from simulation.network import Network
from simulation.trace import Trace

LOOK_SECONDS = 0.003
OTHERS_SECONDS = 0.5
"""The time after which others take what has become free on a full disk, where they go on."""
LOOKS = 2_000
Fault = Callable[[], None]
WEIGHTS = {
    "kill": 3,
    "power": 4,
    "power at a call": 3,
    "power at a sync": 3,
    "power between write and sync": 5,
    "cut": 6,
    "client crash": 3,
    "sync error": 2,
}
"""The kinds of faults that come more often than others."""


class Nemesis:
    """Injects faults until it is told to stop."""

    def __init__(
        self,
        chance: random.Random,
        trace: Trace,
        broker: Broker,
        disk: DiskFaults,
        network: Network,
        late: Late,
        clock: WallClock,
        crash_client: Callable[[], None],
        second_client: Callable[[], None],
    ) -> None:
        self._chance = chance
        self._trace = trace
        self._broker = broker
        self._disk = disk
        self._network = network
        self._late = late
        self._clock = clock
        self._stopped = False
        kinds: dict[str, Fault] = {
            "kill": self._kill,
            "kill at a call": lambda: self._disk.end_at("kill", chance.randint(0, 12)),
            "power": self._power,
            "power at a call": lambda: self._disk.end_at("power", chance.randint(0, 12)),
            "power at a sync": lambda: self._disk.end_at("power", chance.randint(0, 3), "sync_data"),
            "power between write and sync": lambda: self._power_when_written(LOOKS),
            "stop": self._stop,
            "disk error": lambda: self._disk.fail_next(chance.choice(FAILING_CALLS)),
            "sync error": lambda: self._disk.fail_next("sync_data"),
            "disk full": lambda: self._for_a_while(self._full, 20.0 if broker.room.is_bounded else 4.0),
            "short writes": lambda: self._for_a_while(self._short, 6.0),
            "slow disk": lambda: self._for_a_while(self._slow, 8.0),
            "stuck": self._stuck,
            "cut": self._cut,
            "clock": self._jump,
            "client crash": crash_client,
            "second client": second_client,
        }
        self._kinds = kinds
        self._weights = self._drawn_weights()
        self._mean_seconds = chance.choice([1.0, 3.0, 3.0, 8.0])
        if chance.random() < 0.7:
            late.share = chance.choice([0.02, 0.1, 0.3])
        if chance.random() < 0.5:
            network.cut_share = chance.choice([0.002, 0.02])
        if chance.random() < 0.5:
            network.slow_share, network.slow_seconds = 0.05, chance.choice([0.2, 3.0, 12.0])

    def _drawn_weights(self) -> dict[str, int]:
        """Say which kinds this world has, and how often each comes; a disk that has a size always fills."""
        fills = self._broker.room.is_bounded
        weights = WEIGHTS | ({"disk full": 12} if fills else {})
        drawn = {kind: weights.get(kind, 1) for kind in self._kinds if self._chance.random() < 0.6}
        return drawn | ({"disk full": weights["disk full"]} if fills else {})

    async def run(self) -> None:
        """Go on until stopped."""
        while not self._stopped:
            await asyncio.sleep(self._chance.expovariate(1 / self._mean_seconds))
            if self._stopped or not self._weights:
                return
            (kind,) = self._chance.choices(list(self._weights), list(self._weights.values()))
            self._kinds[kind]()

    def stop(self) -> None:
        """Let all be well from now on."""
        self._stopped = True
        self._disk.calm()
        self._broker.room.empty()
        self._broker.room.enlarge()
        self._late.share = self._network.cut_share = self._network.slow_share = 0.0

    def _kill(self) -> None:
        if self._broker.life is not None:
            self._trace.fault("kill")
            self._broker.kill()

    def _power(self) -> None:
        if self._broker.life is not None and not self._stopped:
            self._trace.fault("power")
            self._broker.stop_machine()

    def _power_when_written(self, looks: int) -> None:
        """Cut the power a moment after something was written ahead of its sync: in time for its answer."""
        life = self._broker.life
        if self._stopped or not looks:
            return
        if life is not None and life.engine._writer.ahead.unsynced is not None:
            asyncio.get_running_loop().call_later(self._chance.uniform(0.002, 0.008), self._power)
        else:
            asyncio.get_running_loop().call_later(LOOK_SECONDS, self._power_when_written, looks - 1)

    def _stop(self) -> None:
        if self._broker.life is not None:
            self._trace.fault("clean stop")
            self._broker.stop_cleanly()

    def _stuck(self) -> None:
        self._disk.stuck_operations = 1

    def _full(self, on: bool) -> None:
        """Let the disk be full, by a fault; or, where it has a size, by others, who take what they find free."""
        room = self._broker.room
        if not room.is_bounded:
            self._disk.is_full = on
        elif on:
            self._trace.fault("disk filled by others")
            at_the_bound = room.whole // 4 + self._chance.randint(0, 3_000)  # a few batches fit
            left = self._chance.choice([0, 0, 1_000, at_the_bound, at_the_bound, room.whole])
            goes_on = self._chance.random() < 0.5
            room.fill(left, OTHERS_SECONDS if goes_on else None)
        else:
            room.empty()

    def _short(self, on: bool) -> None:
        self._disk.writes_short = on

    def _slow(self, on: bool) -> None:
        self._disk.is_slow = on
        if on:
            self._trace.fault("slow disk")

    def _for_a_while(self, switch: Callable[[bool], None], seconds: float) -> None:
        switch(True)
        asyncio.get_running_loop().call_later(self._chance.uniform(0.1, seconds), switch, False)

    def _cut(self) -> None:
        links = list(self._network.open.values())
        if links:
            self._network.cut(self._chance.choice(links))

    def _jump(self) -> None:
        seconds = self._chance.choice([-1, 1]) * self._chance.choice([0.5, 5, 30, 30, 3600])
        self._clock.skew_ms += int(seconds * 1000)
        self._trace.fault("clock jump", seconds)
