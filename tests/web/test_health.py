"""Health by HTTP: the table of `health.py`, with a log that is there or not, and syncs or not."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from exacta.ports.log import DiskLevel
from exacta.web import health
from exacta.web.access import ServerRights
from tests.docstring_tables import docstring_table

TABLE = docstring_table("exacta.web.health", "the broker")


class Start:
    """The start of a server, and the log that it has made, in one."""

    disk_level, failed = DiskLevel.HAS_ROOM, None

    def __init__(self, state: str) -> None:
        self.engine = None if state == "recovers" else self
        self.state = state
        self.is_in_touch = state != "out of touch"

    def report(self) -> dict[str, str | float]:
        return {}

    def confirm(self, done: Callable[[], None]) -> None:
        if self.state == "serves":
            done()


@pytest.mark.parametrize(("state", "path", "status"), TABLE.cells())
def test_every_cell(monkeypatch: pytest.MonkeyPatch, state: str, path: str, status: str) -> None:
    if state == "cannot sync":
        monkeypatch.setattr(health, "SYNC_SECONDS", 0.0)
    served = health.routes(Start(state), ServerRights(is_closed=True))  # type: ignore[arg-type]
    [route] = (each for each in served if each.path == path.strip("`"))
    statuses: list[int] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {"type": "http", "method": "GET", "path": route.path, "headers": [], "query_string": b""}
    asyncio.run(route.app(scope, None, send))  # type: ignore[arg-type]
    assert statuses == [int(status)]
