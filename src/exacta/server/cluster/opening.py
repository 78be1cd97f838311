"""The beginning of a broker of a cluster: it opens what is shared, finds its place among the others, and reads the log.

Owns the order of the steps, and that nothing stays open where one of them fails.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from exacta.config.configuration import Configuration
from exacta.engine.recovery import Replayed, replay
from exacta.ports.following import Follower
from exacta.ports.journal import Failed
from exacta.ports.shared import Ledger
from exacta.server.cluster import founding
from exacta.server.cluster.founding import Founded
from exacta.server.cluster.nodes import AnnouncedCluster
from exacta.server.journals import OpenShared, SharedStore
from exacta.server.logins import ReadForLogins, read_for_logins
from exacta.server.reception import Reception

T = TypeVar("T")


class SharedAway(Exception):
    """The database or the objects cannot be reached; the message is for a log line."""


class Opened(Struct, frozen=True, kw_only=True):
    """All that a follower has."""

    ledger: Ledger
    follower: Follower
    """The follower owns the ledger."""
    replayed: Replayed
    """The state as of the follower's position."""
    founded: Founded
    for_logins: ReadForLogins | None
    """None: no door asks for a login."""


def told(error: Exception) -> str:
    """Return an error in words, without the number of one that no file of this machine has."""
    if isinstance(error, OSError) and error.strerror and not error.filename:
        return error.strerror
    return str(error)


async def open_shared(
    open_store: OpenShared,
    cluster: AnnouncedCluster,
    configuration: Configuration,
    reception: Reception,
) -> Opened:
    """Open it, and read the log on a thread; the cluster announces this broker meanwhile, and from then on.

    Raises SharedAway, JournalError, OSError and DecodeError; ServerError where another try would end in the same way.
    """
    store = await open_store()
    follower: Follower | None = None
    try:
        founded = founding.read(await _answer(store.ledger.found, founding.draw(configuration.objects)))
        founded.require_log()
        founding.require_objects(founded, configuration.objects)
        await _come_in(cluster, store)
        for_logins = None
        if any(each.login for each in reception.doors):
            secret = founded.login_secret
            for_logins = await asyncio.to_thread(read_for_logins, configuration, secret, reception.doors)
        follower = await store.follow()
        reading = asyncio.to_thread(replay, follower.begin, configuration.limits())
        replayed = await _to_its_end(asyncio.ensure_future(reading))
    except BaseException:
        cluster.stop()
        (store if follower is None else follower).close()  # a follower owns its ledger
        raise
    return Opened(ledger=store.ledger, follower=follower, replayed=replayed, founded=founded, for_logins=for_logins)


async def _to_its_end(reading: "asyncio.Future[T]") -> T:
    """Wait for a thread that reads, also where nobody wants the result any more: what it reads is not to be closed."""
    try:
        return await asyncio.shield(reading)
    except asyncio.CancelledError:
        await asyncio.wait((reading,))
        raise


async def _come_in(cluster: AnnouncedCluster, store: SharedStore) -> None:
    """Wait until the node id is this broker's."""
    entered = asyncio.Event()
    cluster.begin(store.ledger, entered.set)
    await entered.wait()


async def _answer(call: Callable[..., None], *arguments: Any) -> Any:
    """Return what a call of the ledger hands to its callback. Raises SharedAway for a failure."""
    answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def take(answer: Any) -> None:
        if not answered.done():
            answered.set_result(answer)

    call(*arguments, take)
    answer = await answered
    if isinstance(answer, Failed):
        raise SharedAway(answer.reason)
    return answer
