"""Health, as a supervisor asks for it by HTTP: whether the process lives, and whether clients may come.

    the broker      `/health/live`   `/health/ready`
    serves          200              200
    recovers        200              503
    cannot sync     200              503
    out of touch    200              503

A broker of a cluster serves as leader and as follower, and in both it is out of touch while PostgreSQL does not answer.
It recovers between two roles. A paused process answers nothing: a supervisor that asks whether it lives ends it.

Live says that the event loop answers. Ready says that clients are served, and that what they write becomes durable.

On a full disk the broker is ready: commits, ends and deletions go on, and the answer says what is refused. While it
recovers, the answer says how far that is. While the server stops, the guard answers 503 to both.

Both answer without a login, but then by the status alone: who may not describe the cluster sees no details.
"""

import asyncio
from typing import Protocol

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from exacta.ports.log import DiskLevel, Log
from exacta.web.access import ServerRights
from exacta.web.answers import json_answer

DISK = {
    DiskLevel.HAS_ROOM: "has room",
    DiskLevel.FULL: "full: records are refused",
    DiskLevel.USED_UP: "full, and the reserve is used up: records, commits and acknowledgements are refused",
}
SYNC_SECONDS = 5.0
"""A journal that has not synced for so long serves nobody."""


class Starting(Protocol):
    """The start of the server, as it is seen from here."""

    @property
    def engine(self) -> Log | None:
        """The log; None: it recovers."""

    @property
    def is_in_touch(self) -> bool:
        """False: the database that several brokers share does not answer."""

    def report(self) -> dict[str, str | float]:
        """Return how far recovery is."""


def routes(starting: Starting, access: ServerRights) -> list[Route]:
    """Return the routes of both paths."""

    async def live(http: HttpRequest) -> Response:
        return json_answer(200, {"status": "live"})

    async def ready(http: HttpRequest) -> Response:
        status, said, details = await _readiness(starting)
        return json_answer(status, {"status": said} | (details if access.describes(http) else {}))

    return [Route("/health/live", live), Route("/health/ready", ready)]


async def _readiness(starting: Starting) -> tuple[int, str, dict[str, str | float]]:
    """Return the answer's status, its one word, and the details."""
    engine = starting.engine
    if engine is None:
        return 503, "recovering", starting.report()
    if not starting.is_in_touch:
        return 503, "out of touch", starting.report()
    if await _syncs(engine):
        return 200, "ready", starting.report() | {"disk": DISK[engine.disk_level]}
    reason = f"the journal has not synced for {SYNC_SECONDS:g} seconds"
    return 503, "failed", {"reason": str(engine.failed or reason)}


async def _syncs(engine: Log) -> bool:
    """Return whether all that was decided becomes durable soon."""
    durable = asyncio.Event()
    engine.confirm(durable.set)
    try:
        await asyncio.wait_for(durable.wait(), SYNC_SECONDS)
    except TimeoutError:
        return False
    return True
