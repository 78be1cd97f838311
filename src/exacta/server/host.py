"""The server as a front sees it that is made: its doors, its loop, and who may come in."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from exacta.config.configuration import Configuration
from exacta.front.connection_limits import Admission
from exacta.front.doors import Door
from exacta.server.progress import Progress


class Host(Struct, frozen=True, kw_only=True):
    """The parts that a server gives to the fronts that it makes."""

    configuration: Configuration
    data: Path
    loop: asyncio.AbstractEventLoop
    doors: Sequence[Door]
    """All doors of the server, which are bound."""
    register: Callable[[Any], bool]
    """Lets a new connection in, or not (`ClientConnection`)."""
    forget: Callable[[Any], None]
    progress: Progress
    admission: Admission
    connections: Collection[Any]

    def doors_of(self, front: str) -> list[Door]:
        """Return the doors of one front."""
        return [each for each in self.doors if each.front == front]
