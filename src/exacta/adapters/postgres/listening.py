"""Listening for hints, and giving them.

Theory of operation: the session only listens, gives hints, and holds the lock by which others see that this instance of
a broker lives. Its statements are simple queries, which asyncpg does not prepare. When it is lost it is made again, and
a hint is taken for given, since one may have been missed.
"""

import asyncio
import zlib
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from exacta.adapters.postgres.sessions import Connection, Doubt, PostgresRefused, PostgresServer

HINT_SECONDS = 0.005
"""A hint serves all that is appended for so long: each takes a lock of the whole database."""
LOOK_SECONDS = 5.0
"""The broker looks this often whether the session is still there."""
AGAIN_SECONDS = 0.5
"""The broker waits so long before it connects again."""


class HintListener:
    """The session of a broker that listens."""

    def __init__(self, server: PostgresServer, start: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        self._start = start
        # The name of a channel may not be longer than the name of a schema.
        self._channel = f"exacta_{zlib.crc32(server.schema.encode()):08x}"
        # A hint is worth no wait for disk and standby.
        self._session = server.session(on_connected=self._connected, synchronous_commit="off")
        self._is_lost = asyncio.Event()
        self._key: int | None = None
        self._held_on: Connection | None = None
        self._is_hinting = self._wants_hint = False
        self.on_hint: Callable[[], None] = lambda: None

    async def run(self) -> None:
        """Listen, and connect again when the session is lost."""
        while True:
            self._is_lost.clear()
            try:
                await self._session.run(lambda on: on.execute("select"))
            except (Doubt, PostgresRefused):
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._is_lost.wait(), LOOK_SECONDS)

    async def _connected(self, on: Connection) -> None:
        on.add_termination_listener(lambda _: self._is_lost.set())
        await on.add_listener(self._channel, partial(self._hinted, on.get_server_pid()))
        if self._key is not None:
            await self._hold(on)
        self.on_hint()

    def _hinted(self, own_pid: int, on: object, pid: int, channel: str, payload: object) -> None:
        if pid != own_pid:
            self.on_hint()

    async def hold(self, key: int) -> None:
        """Hold the lock of this key for as long as the session lasts, and again in the next one. Raises Doubt."""
        self._key = key
        await self._session.run(self._hold)

    async def _hold(self, on: Connection) -> None:
        if self._held_on is not on:
            await on.execute(f"select pg_advisory_lock_shared(hashtext(current_schema() || '.broker'), {self._key})")
            self._held_on = on

    def hint(self) -> None:
        """Give a hint soon."""
        self._wants_hint = True
        if not self._is_hinting:
            self._is_hinting = True
            self._start(self._give_hints())

    async def _give_hints(self) -> None:
        try:
            while self._wants_hint:
                self._wants_hint = False
                await self._session.run(lambda on: on.execute(f'notify "{self._channel}"'))
                await asyncio.sleep(HINT_SECONDS)
        except (Doubt, PostgresRefused):
            pass  # followers look by themselves as well
        finally:
            self._is_hinting = False
