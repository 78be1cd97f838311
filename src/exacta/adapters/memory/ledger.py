"""A ledger in memory: the same contract as the one in PostgreSQL, held to it by the same test suite.

It is one broker's side of a `MemoryDatabase`. Each call sends a request over the broker's `DatabaseWire`, gets a reply
over it, and fails when the reply does not come in time. What the calls do is written in `tables.py`.

One session is for all that a leader does, another for the rest. A failed call of the leader ends its session, and with
it the lead lock, as a real ledger leaves a connection whose state it does not know. So a claim by another may follow.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from exacta.adapters.memory import tables
from exacta.adapters.memory.database import DatabaseSession, MemoryDatabase, Reply
from exacta.adapters.memory.tables import Tables
from exacta.adapters.memory.wire import DatabaseWire
from exacta.ports.journal import Failed
from exacta.ports.scheduler import Scheduler
from exacta.ports.shared.ledger import (
    Appended,
    BrokerSeen,
    CatalogChange,
    CatalogSeen,
    Claimed,
    Done,
    Guarded,
    Head,
    SharedBroker,
    Superseded,
    TailGroup,
)

TIMEOUT_SECONDS = 5.0


class _Connection:
    """Keep a session: a new one after each failure."""

    def __init__(self, connect: Callable[[], DatabaseSession]) -> None:
        self._connect = connect
        self._session: DatabaseSession | None = None

    @property
    def session(self) -> DatabaseSession:
        """The session that requests go to."""
        if self._session is None:
            self._session = self._connect()
        return self._session

    def leave(self, session: DatabaseSession) -> None:
        """End a session as far as this side can; the server notices when it hears of it."""
        if session is self._session:
            self._session = None
            session.wire.requests.carry(partial(session.end, by_server=False))

    def close(self) -> None:
        """End the session that there is."""
        if self._session is not None:
            self.leave(self._session)


class MemoryLedger:
    """Implement `exacta.ports.shared.Ledger` over a `MemoryDatabase`."""

    def __init__(
        self,
        database: MemoryDatabase,
        scheduler: Scheduler,
        wire: DatabaseWire | None = None,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        """Reach the database over this wire (None: one that takes no time); callbacks run on the scheduler."""
        self._database = database
        self._scheduler = scheduler
        self._wire = wire or DatabaseWire(scheduler)
        self._timeout_seconds = timeout_seconds
        self._hinted: Callable[[], None] | None = None
        self._is_closed = False
        self._appending = False
        self._lead = _Connection(lambda: database.primary.connect(self._wire))
        self._rest = _Connection(lambda: database.primary.connect(self._wire, self._hear))

    # --- what the leader does -----------------------------------------------------------------------------------------

    def append(self, group: TailGroup, done: Guarded[Appended]) -> None:
        """See `Ledger.append`."""
        assert not self._appending, "one append at a time"
        self._appending = True
        group = group._replace(body=bytes(group.body))

        def answered(result: Appended | Superseded | Failed) -> None:
            self._appending = False
            done(result)

        self._write(self._lead, lambda found, _: tables.append(found, group), answered)

    def confirm(self, epoch: int, done: Guarded[Appended]) -> None:
        """See `Ledger.confirm`."""
        self._write(self._lead, lambda found, _: tables.confirm(found, epoch), done)

    def beat(self, epoch: int, durable: int, done: Guarded[Appended]) -> None:
        """See `Ledger.beat`."""
        self._write(self._lead, lambda found, _: tables.beat(found, epoch, durable), done)

    def accept_loss(self, epoch: int, end: int, done: Guarded[Appended]) -> None:
        """See `Ledger.accept_loss`."""
        self._write(self._lead, lambda found, _: tables.accept_loss(found, epoch, end), done)

    def resign(self, epoch: int) -> None:
        """See `Ledger.resign`."""
        self._lead.close()

    # --- what every broker does ---------------------------------------------------------------------------------------

    def found(self, about: bytes, done: Done[bytes]) -> None:
        """See `Ledger.found`."""
        self._write(self._rest, lambda found, _: tables.found(found, about), done)

    def found_again(self, epoch: int, about: bytes, closes: bool, done: Guarded[Appended]) -> None:
        """See `Ledger.found_again`."""
        self._write(self._lead, lambda found, _: tables.found_again(found, epoch, about, is_closed=closes), done)

    def read_head(self, done: Done[Head]) -> None:
        """See `Ledger.read_head`."""
        self._read(tables.head, done)

    def read_tail(self, position: int, max_bytes: int, done: Done[Sequence[TailGroup]]) -> None:
        """See `Ledger.read_tail`."""
        self._read(lambda found, _: tables.groups(found, position, max_bytes), done)

    def read_body(self, position: int, start: int, size: int, done: Done[bytes]) -> None:
        """See `Ledger.read_body`."""
        self._read(lambda found, _: tables.body(found, position, start, size), done)

    def await_lead(self, done: Done[None]) -> None:
        """See `Ledger.await_lead`."""
        session = self._rest.session
        self._ask(self._rest, lambda reply: session.server.await_lead(session, reply), done, waits=True)

    def claim(self, seen: Head, node_id: int, instance: str, done: Guarded[Claimed]) -> None:
        """See `Ledger.claim`."""
        session, lock_key = self._lead.session, self._database.draw_lock_key()

        def request(reply: Reply) -> None:
            session.locks.add(lock_key)
            session.server.write(lambda found: tables.claim(found, seen.epoch, node_id, lock_key), reply)

        self._ask(self._lead, request, done)

    def on_hint(self, hinted: Callable[[], None]) -> None:
        """See `Ledger.on_hint`."""
        self._hinted = hinted
        _ = self._rest.session  # which listens from now on

    def _hear(self) -> None:
        self._scheduler.call_soon(self._tell_hint)

    def _tell_hint(self) -> None:
        if self._hinted is not None and not self._is_closed:
            self._hinted()

    def hint(self) -> None:
        """See `Ledger.hint`."""
        session = self._rest.session

        def request(reply: Reply) -> None:
            session.server.hint()
            reply(None)

        self._ask(self._rest, request, lambda _: None)

    def announce(self, broker: SharedBroker, done: Guarded[Appended]) -> None:
        """See `Ledger.announce`."""
        session = self._rest.session

        def request(reply: Reply) -> None:
            server = session.server
            living = server.living
            session.instance = broker.instance
            server.write(lambda found: tables.announce(found, broker, living, server.now_ms()), reply)

        self._ask(self._rest, request, done)

    def read_brokers(self, done: Done[Sequence[BrokerSeen]]) -> None:
        """See `Ledger.read_brokers`."""
        self._read(tables.brokers, done)

    # --- the catalog --------------------------------------------------------------------------------------------------

    def read_catalog(self, done: Done[CatalogSeen]) -> None:
        """See `Ledger.read_catalog`."""
        self._read(lambda found, _: tables.catalog(found), done)

    def intend(self, keys: Sequence[str], done: Done[None]) -> None:
        """See `Ledger.intend`."""
        self._write(self._rest, lambda found, now_ms: tables.intend(found, keys, now_ms), done)

    def change_catalog(self, epoch: int, change: CatalogChange, done: Guarded[int]) -> None:
        """See `Ledger.change_catalog`."""
        self._write(self._lead, lambda found, now_ms: tables.change_catalog(found, epoch, change, now_ms), done)

    def sweep(self, done: Done[Sequence[str]]) -> None:
        """See `Ledger.sweep`."""
        self._write(self._rest, tables.sweep, done)

    def forget(self, keys: Sequence[str], done: Done[None]) -> None:
        """See `Ledger.forget`."""
        self._write(self._rest, lambda found, _: tables.forget(found, keys), done)

    # --- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """See `Ledger.close`; the kernel does the same for a process that was killed."""
        self._is_closed = True
        self._lead.close()
        self._rest.close()

    # --- requests and replies -----------------------------------------------------------------------------------------

    def _read(self, look: Callable[[Tables, int], Any], done: Callable[[Any], object]) -> None:
        server = self._rest.session.server
        self._ask(self._rest, lambda reply: reply(look(server.visible, server.now_ms())), done)

    def _write(
        self, connection: _Connection, change: Callable[[Tables, int], Any], done: Callable[[Any], object]
    ) -> None:
        server = connection.session.server
        self._ask(connection, lambda reply: server.write(lambda found: change(found, server.now_ms()), reply), done)

    def _ask(
        self,
        connection: _Connection,
        request: Callable[[Reply], object],
        done: Callable[[Any], object],
        *,
        waits: bool = False,
    ) -> None:
        """Send a request to the session, and call back once: with the reply, or because none has come in time.

        What the server does with it is `request`, which is called there. The time does not count if the call `waits`.
        """
        session = connection.session
        is_over = False

        def answered(result: object) -> None:
            nonlocal is_over
            if is_over or self._is_closed:
                return
            is_over = True
            if timer is not None:
                timer.cancel()
            if isinstance(result, Failed):
                connection.leave(session)
            done(result)

        def reply(answer: object) -> None:
            session.wire.replies.carry(lambda: tell(answer), lost)

        def lost() -> None:
            tell(Failed("the connection to the database was lost"))

        def tell(result: object) -> None:
            self._scheduler.call_soon(answered, result)

        late = Failed(f"the database has not answered within {self._timeout_seconds:g} s")
        timer = None if waits else self._scheduler.call_later(self._timeout_seconds, answered, late)
        session.wire.requests.carry(lambda: session.serve(request, reply), lost)
