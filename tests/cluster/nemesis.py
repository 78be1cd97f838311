"""The faults of the campaign, in an order that is drawn from one seed."""

import random
import time
from collections.abc import Callable

from exacta.verify.history import Fault
from tests.cluster.machines import Machine, Machines

_PAUSES_S = (0.5, 3.0, 30.0)
"""Half of the pauses are between the first two, half between the last two; most of these are short."""
_CUTS_S = 0.2, 6.0
_MOST_DELAY_S = 0.2
_WAYS = ("to the database",), ("from the database",), ("to the database", "from the database")

_Do = Callable[[Machine], str]


class ClusterNemesis:
    """Does one fault after the other, each to its end. See `exacta.verify.campaign.faults.ClusterFaults`."""

    possible = True

    def __init__(self, machines: Machines, seed: int, now_us: Callable[[], int]) -> None:
        self._machines = machines
        self._chance = random.Random(seed)
        self._now_us = now_us
        self._kinds: dict[str, tuple[int, _Do]] = {
            "kill -9": (6, self._kill),
            "paused": (5, self._pause),
            "cut": (5, self._cut),
            "reset": (2, self._reset),
            "slow": (2, self._slow),
            "stopped": (3, self._stop),
            "moved": (2, self._move),
            "database killed": (3, self._kill_database),
            "failed over": (2, self._fail_over),
        }

    def strike(self) -> list[Fault]:
        """Do one fault, and undo it."""
        # All draws come first: what the cluster does meanwhile changes no later fault.
        (kind,) = self._chance.choices(list(self._kinds), [weight for weight, _ in self._kinds.values()])
        at_leader = self._chance.random() < 0.7 or kind == "moved"
        other = self._chance.choice(list(self._machines.brokers))
        leader = self._machines.leading() if at_leader else None
        node_id = other if leader is None else leader
        role = "leads" if leader is not None else "any"
        start_us = self._now_us()
        again = self._machines.start_ended()
        how = self._kinds[kind][1](self._machines.brokers[node_id])
        target = f"broker {node_id} ({role}){how}"
        targets = [(kind, target), *(("started again", f"broker {each.node_id}") for each in again)]
        return [Fault(kind=kind, target=target, start_us=start_us, end_us=self._now_us()) for kind, target in targets]

    def _kill(self, broker: Machine) -> str:
        broker.kill()
        away_s = self._away()
        broker.start()
        return f", away {away_s:.1f} s"

    def _stop(self, broker: Machine) -> str:
        broker.stop()
        away_s = self._away()
        broker.start()
        return f", away {away_s:.1f} s"

    def _move(self, broker: Machine) -> str:
        if self._machines.leading() != broker.node_id:
            return ", not touched"
        return "" if broker.move() else ", not moved"

    def _away(self) -> float:
        away_s = self._chance.choice((0.0, self._chance.uniform(0.0, 3.0)))
        time.sleep(away_s)
        return away_s

    def _pause(self, broker: Machine) -> str:
        short, medium, long = _PAUSES_S
        paused_s = self._chance.uniform(short, medium)
        if self._chance.random() < 0.5:
            paused_s = medium + (long - medium) * self._chance.random() ** 3
        broker.pause()
        try:
            time.sleep(paused_s)
        finally:
            broker.wake()
        return f", for {paused_s:.1f} s"

    def _cut(self, broker: Machine) -> str:
        ways = self._chance.choice(_WAYS)
        cut_s = self._chance.uniform(*_CUTS_S)
        reset = self._chance.random() < 0.3
        for link in broker.links:
            link.cut(*ways)
        time.sleep(cut_s)
        for link in broker.links:
            if reset:
                link.reset()
            link.mend()
        return f", {' and '.join(ways)}, for {cut_s:.1f} s{', then reset' if reset else ''}"

    def _reset(self, broker: Machine) -> str:
        for link in broker.links:
            link.reset()
        return ""

    def _slow(self, broker: Machine) -> str:
        delay_s, slow_s = self._chance.uniform(0.001, _MOST_DELAY_S), self._chance.uniform(*_CUTS_S)
        for link in broker.links:
            link.slow(delay_s)
        time.sleep(slow_s)
        for link in broker.links:
            link.mend()
        return f", by {delay_s * 1000:.0f} ms, for {slow_s:.1f} s"

    def _kill_database(self, broker: Machine) -> str:
        self._machines.databases.restart_killed()
        return ", not touched"

    def _fail_over(self, broker: Machine) -> str:
        self._machines.fail_over()
        return ", not touched"
