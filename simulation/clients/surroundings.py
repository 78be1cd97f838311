"""The things that a client's program knows of its world."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from simulation.clients.connection import Connection
from simulation.clients.plain_calls import PlainCalls
from simulation.history import History, Place

MOST_MEANS = 4
"""No client thinks for longer than this many times the mean, because a world that waits for its end would take it for
stuck."""


@dataclass(slots=True)
class Surroundings:
    """The surroundings of one instance of a client, made by the world."""

    name: str
    instance: int
    chance: random.Random
    connection: Connection
    other_connection: Connection
    """A second one, for those who look from elsewhere."""
    history: History
    now_ms: Callable[[], int]
    is_over: Callable[[], bool]
    is_superseded: Callable[[], bool]
    """True if a later instance of the same client has begun."""
    places: list[Place]
    version: int
    timeout_ms: int
    loop: asyncio.AbstractEventLoop
    calls: PlainCalls

    @property
    def writer(self) -> str:
        """Return what the writings of this instance begin with."""
        return f"{self.name}/{self.instance}"

    async def think(self, seconds: float) -> None:
        """Take about so long for something else."""
        await asyncio.sleep(min(self.chance.expovariate(1 / seconds), MOST_MEANS * seconds))
