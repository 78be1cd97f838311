"""The lead, and what only a leader does.

Theory of operation: the lead lives on a session of its own. It holds the lock by which the others see it live, and it
appends and beats in turn. When anything about it is in doubt, its session is terminated, and with it the
lead. So what this broker knows of its lead (the epoch, the tail table) is never behind the database.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol, TypeAlias, TypeVar

from exacta.adapters.postgres.sessions import Connection, Doubt, PostgresRefused, PostgresServer, PostgresSession
from exacta.ports.journal import Failed
from exacta.ports.shared import Appended, Claimed, Superseded, TailGroup

T = TypeVar("T")
Answer: TypeAlias = Appended | Superseded | Failed

PART_BYTES = 4 << 20
"""A body is kept in parts of this size: the server moves each in one piece, in memory."""
TABLE_BYTES = 64 << 20
"""When so much was appended to a tail table, the next one takes over: a segment's worth goes at a time."""
FREE_SECONDS = 1.0
"""The leader looks this often whether tail tables can be emptied."""
CONFIRMED = -1
"""The functions of a leader return this, or the epoch for which they did nothing."""
_random = random.SystemRandom()


class RunRead(Protocol):
    """Run a statement on a session that reads."""

    async def __call__(self, work: Callable[[Connection], Awaitable[T]]) -> T: ...


class _Lead:
    """Hold what this broker knows of its lead: its session, its epoch, and the tail table that takes its groups."""

    def __init__(self, session: PostgresSession, epoch: int) -> None:
        self.session = session
        self.epoch = epoch
        self.table = 0
        self.table_bytes = 0

    @property
    def append_statement(self) -> str:
        """The statement that appends a group to the present tail table."""
        return f"select append_{self.table}($1, $2, $3, $4, $5, $6, $7, $8)"


class Leading:
    """The lead of this broker, if it has it. Its methods raise Doubt where a session that reads fails."""

    def __init__(
        self, server: PostgresServer, read: RunRead, start: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self._server = server
        self._read = read
        self._start = start
        self._lead: _Lead | None = None

    async def claim(self, seen_epoch: int, node_id: int, instance: str) -> Claimed | Superseded:
        """See `Ledger.claim`."""
        if self._lead is not None:
            self._end(self._lead)
        lead = _Lead(self._server.session(once=True), seen_epoch + 1)
        key = _random.randrange(1, 1 << 31)
        statement = "select * from claim($1, $2, $3, $4)"
        try:
            row = await lead.session.run(lambda on: on.fetchrow(statement, seen_epoch, node_id, instance, key))
        except BaseException:
            self._end(lead)
            raise
        present, lead.table, lead.table_bytes, is_claimed = row
        if not is_claimed:
            self._end(lead)
            return Superseded(present)
        self._lead = lead
        self._start(self._free_tail(lead))
        return Claimed(present)

    async def append(self, group: TailGroup) -> Answer:
        """See `Ledger.append`."""
        lead = self._lead
        if lead is None or lead.epoch != group.epoch:
            return await self._without_lead(group.epoch, group.position)
        body = memoryview(group.body)
        first, *further = [body[start : start + PART_BYTES] for start in range(0, len(body), PART_BYTES)] or [body]
        arguments = (group.epoch, group.position, group.end, group.durable, group.catalog, len(body), first, further)
        result = await self._led(lead, lambda on: on.fetchval(lead.append_statement, *arguments))
        if isinstance(result, Appended):
            lead.table_bytes += len(body)
            if lead.table_bytes >= TABLE_BYTES:
                lead.table_bytes = 0
                self._start(self._turn(lead))
        return result

    async def beat(self, epoch: int, durable: int) -> Answer:
        """See `Ledger.beat`."""
        lead = self._lead
        if lead is None or lead.epoch != epoch:
            return await self._without_lead(epoch)
        return await self._led(lead, lambda on: on.fetchval("select beat($1, $2)", epoch, durable))

    def resign(self, epoch: int) -> None:
        """See `Ledger.resign`."""
        if self._lead is not None and self._lead.epoch == epoch:
            self._end(self._lead)

    async def _led(self, lead: _Lead, work: Callable[[Connection], Awaitable[int]]) -> Answer:
        """Run a call of the leader, after which any doubt ends its lead, and so does a later epoch."""
        try:
            present = await lead.session.run(work)
        except Doubt as doubt:
            self._end(lead)
            return Failed(str(doubt))
        if present == CONFIRMED:
            return Appended()
        if present != lead.epoch:
            self._end(lead)
        return Superseded(present)

    async def _without_lead(self, epoch: int, position: int | None = None) -> Superseded | Failed:
        """Say why nothing is done in this epoch (at this position) by a broker that does not lead in it."""
        present, end = await self._read(lambda on: on.fetchrow("select epoch, tail_end(tail_table) from head"))
        if present != epoch or not present or position not in (None, end):
            return Superseded(present)
        return Failed(f"this broker does not lead in epoch {epoch}, or the session in which it did was lost")

    async def _turn(self, lead: _Lead) -> None:
        """Let the next tail table take new groups, if it is empty."""

        async def turn(on: Connection) -> int:
            table = await on.fetchval("select turn_tail($1)", lead.epoch)
            lead.table = table
            return CONFIRMED

        await self._led(lead, turn)

    async def _free_tail(self, lead: _Lead) -> None:
        """Empty the tail tables whose groups are gone, as long as the lead lasts."""
        while self._lead is lead:
            await asyncio.sleep(FREE_SECONDS)
            with suppress(Doubt, PostgresRefused):
                await self._read(lambda on: on.fetchval("select free_tail($1)", lead.epoch))

    def _end(self, lead: _Lead) -> None:
        lead.session.end()
        self._server.leave(lead.session)
        if self._lead is lead:
            self._lead = None
