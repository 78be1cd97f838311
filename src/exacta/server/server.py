"""One server: the data directory, the journal, the engine and the listener, and their lives from start to stop.

`exacta serve` (`process.py`) and the embedded broker (`exacta.testing`) run the same `Server`; `assembly.py` puts its
pieces together.

Theory of operation. `open` binds the port, so that one that is taken fails before anything else, then recovers the
journal, which may take its time and blocks; only then does `start` accept clients. Where a web front is asked for,
`open_in_sight` lets it answer meanwhile, and the journal is read on a thread. `stop` is the clean end: no new
clients, no new requests, everybody who waits for records is answered, what has gathered is made durable, the state is
saved, the journal closed, then the connections. `abandon` is the end that a crash would make: nothing is flushed,
nothing is saved. When the journal fails, nothing in memory can be trusted: `failure` is set and the owner of the server
must abandon it (decision D4).
"""

import asyncio
import contextlib
import logging
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from exacta.adapters.clock import Clock
from exacta.config.configuration import Configuration
from exacta.config.dynamic import DynamicConfiguration
from exacta.core.state.state import State
from exacta.engine.engine import Engine, EngineFailed
from exacta.engine.recovery import Recovered, recover
from exacta.front.broker import Broker
from exacta.front.doors import Door
from exacta.front.hosts import share_beyond_loopback, share_of
from exacta.ports.journal import JournalDamaged, JournalError
from exacta.security.first_user import FirstUserToken
from exacta.server.access import require_authorizer
from exacta.server.advice import with_advice
from exacta.server.assembly import assemble_broker, assemble_engine, upkeep_schedule
from exacta.server.connections import Connections
from exacta.server.errors import ServerError
from exacta.server.first_user import first_user_token
from exacta.server.host import Host
from exacta.server.identity import JOURNAL_DIRECTORY, META_FILE, cluster_id, require_log
from exacta.server.journals import Place, ServedJournal
from exacta.server.logins import SECRET_FILE, ReadForLogins, login_secret, logins_of, read_for_logins
from exacta.server.progress import Progress
from exacta.server.reception import Reception
from exacta.server.run_time_options import tell_of_options_set_at_run_time
from exacta.server.seams import Seams
from exacta.server.serving import Serving

logger = logging.getLogger("exacta.server")

_DRAIN_SECONDS = 5.0


class _Read(Struct, frozen=True):
    """The contents of the data directory."""

    journal: ServedJournal
    recovered: Recovered
    cluster_id: str
    for_logins: ReadForLogins | None
    """None: no door asks for a login."""
    clock: Clock


class Server:
    """One broker on one loop. Call everything on the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        configuration: Configuration,
        data: Path,
        doors: Sequence[Door],
        seams: Seams = Seams(),  # noqa: B008  # frozen
        *,
        begins: Callable[[], None] = lambda: None,
    ) -> None:
        """`begins` is called, maybe on a thread, once the data directory is ours and before it is read."""
        self._begins = begins
        self.failure: asyncio.Future[EngineFailed] = loop.create_future()
        """The future that is done when the journal has failed."""
        self._loop = loop
        self._configuration = configuration
        self._data = data
        self._seams = seams
        self.reception = Reception(doors, seams.fronts, configuration)
        """The doors, and who comes in by them."""
        self.first_user: FirstUserToken | None = None
        """The token that makes the first user, once the server is open; None: none is needed."""
        self._held: list[tuple[Callable[..., object], tuple[object, ...]]] | None = None
        """None: the journal's threads are heard at once."""
        self._progress = Progress()
        self._journal: ServedJournal | None = None
        self._engine: Engine | None = None
        self._serving: Serving | None = None
        self._connections = Connections(loop, configuration, self.reception.is_early)

    @property
    def engine(self) -> Engine:
        """The engine, once the server is open."""
        assert self._engine is not None
        return self._engine

    @property
    def _broker(self) -> Broker | None:
        return None if self._serving is None else self._serving.broker

    # --- beginning ----------------------------------------------------------------------------------------------------

    def read_certificates_again(self) -> None:
        """See `Reception`."""
        self.reception.read_certificates_again(self._loop.time())

    def open(self) -> None:
        """Bind the port, recover the journal. Blocks. Raises ServerError, and leaves nothing behind then."""
        try:
            self.reception.bind()
            self._assemble(self._read())
        except BaseException:
            self.reception.close()
            self._close_journal()
            raise

    async def open_in_sight(self) -> None:
        """Do as `open` does; a front that needs no broker yet answers meanwhile, if there is one."""
        if not self.reception.has_early:
            self.open()
            return
        try:
            self.reception.bind()
            await self.reception.start_early(self._host())
            self._held = []
            self._assemble(await asyncio.to_thread(self._read))
            held, self._held = self._held, None
            for callback, args in held:
                self._loop.call_soon(callback, *args)
        except BaseException:
            self.abandon()
            raise

    def _host(self) -> Host:
        return Host(
            configuration=self._configuration,
            data=self._data,
            loop=self._loop,
            doors=self.reception.doors,
            register=self._connections.register,
            forget=self._connections.forget,
            progress=self._progress,
            admission=self._connections.admission,
            connections=self._connections,
        )

    def _read(self) -> _Read:
        """Read the data directory, on any thread."""
        self._progress.begins()
        was_there = os.path.exists(self._data)  # unlike Path's, it raises nothing where a name is too long or forbidden
        if was_there and not os.path.isdir(self._data):
            raise ServerError(f"the data directory {self._data} is not a directory")
        clock = self._seams.clock()
        directory = self._data / JOURNAL_DIRECTORY
        try:
            place = Place(
                directory=directory,
                call_soon=self._call_soon_threadsafe,
                configuration=self._configuration,
                reserve_bytes=self._seams.reserve_bytes,
            )
            require_log(self._data)
            journal = self._journal = self._progress.journal = self._seams.journal(place)
            require_log(self._data)  # it may have gone while this start waited; nothing takes it away from now on
            identity = cluster_id(self._data / META_FILE)
            if (mode := stat.S_IMODE(os.stat(self._data).st_mode)) & 0o077:
                text = "other users of this machine may look into the data directory (mode %04o): chmod 700 %s"
                logger.warning(text, mode, self._data)
            self._begins()
            recovered = recover(journal, self._configuration.limits(), clock.now_ms)
            require_authorizer(self._configuration, recovered.state, self._data, self.reception.doors)
            doors, for_logins = self.reception.doors, None
            if any(each.login for each in doors):
                for_logins = read_for_logins(self._configuration, login_secret(self._data / SECRET_FILE), doors)
            return _Read(journal, recovered, identity, for_logins, clock)
        except (JournalError, OSError) as error:
            raise ServerError(self._cannot_use(error, was_there=was_there)) from error
        except msgspec.DecodeError as error:
            raise ServerError(f"the journal in {self._data} holds what this version cannot read: {error}") from error

    def _assemble(self, read: _Read) -> None:
        state = read.recovered.state
        in_force = DynamicConfiguration(self._configuration, lambda: state.broker_configs)
        engine: Engine = assemble_engine(
            read.journal,
            self._loop,
            clock=read.clock.now_ms,
            wait_clock=read.clock.wait_ms,
            limits=self._configuration.limits(),
            on_failure=self._failed,
            schedule=upkeep_schedule(self._configuration, record_clock=read.clock.least_ms, now=lambda: in_force.now),
            recovered=read.recovered,
        )
        self._engine = engine
        engine.owner_of = share_of if self._seams.loopback_has_share else share_beyond_loopback
        advice, doors = engine.advice, self.reception.doors
        self.first_user = first_user_token(self._data, advice, self._configuration, state, doors)
        found, wall_ms = read.for_logins, read.clock.wall_ms
        broker = assemble_broker(
            engine,
            self._configuration,
            logins=None if found is None else logins_of(found, self._configuration, advice, wall_ms, self.first_user),
            cluster_id=read.cluster_id,
            log_dir=self._data.absolute(),
            wall_clock=wall_ms,
        )
        token_keys = None if found is None else found.token_keys
        self._serving = Serving(broker, self._connections, self.reception, self._loop, token_keys)
        self._progress.has_recovered(engine)
        self._tell_of_recovery(engine, read.recovered)

    def _cannot_use(self, error: JournalError | OSError, *, was_there: bool) -> str:
        if not was_there and not os.path.exists(self._data):
            reason = error.__cause__ or error
            return f"cannot make the data directory {self._data}: {reason}; name another with --data"
        at_data = "" if isinstance(error, JournalError) else f"cannot use the data directory {self._data}: "
        return with_advice(f"{at_data}{error}")

    def _tell_of_recovery(self, engine: Engine, recovered: Recovered) -> None:
        values = {"seconds": self._progress.recovery_seconds, "events": recovered.events}
        logger.info(
            "recovered in %(seconds).2f s, with events=%(events)d after the last snapshot: topics=%(topics)d, "
            "partitions=%(partitions)d, groups=%(groups)d, open transactions=%(transactions)d",
            values | engine.advice.look(_contents),
        )
        tell_of_options_set_at_run_time(self._configuration, recovered.state.broker_configs)

    async def start(self) -> None:
        """Accept clients. Raises ServerError."""
        assert self._serving is not None
        self._serving.start()
        try:
            await self.reception.start(self._host(), self._serving.broker)
        except ServerError:
            self.abandon()
            raise

    # --- the end ------------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop cleanly; see the module's docstring."""
        engine, journal = self._engine, self._journal
        assert engine is not None
        assert journal is not None
        self.reception.close()
        self._stop_looking()
        self._connections.stop_taking_requests()
        stopped = asyncio.Event()
        with contextlib.suppress(JournalDamaged):  # an altered index: the engine has failed, as is seen below
            engine.close(stopped.set)
        waiting = asyncio.ensure_future(stopped.wait())
        await asyncio.wait((waiting, self.failure), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self.failure.done():
            self.abandon()
            return
        self._close_journal()
        await asyncio.sleep(0)  # what the journal finished last is handed out in this turn of the loop,
        await asyncio.sleep(0)  # and sent in this one
        await self._connections.close(_DRAIN_SECONDS)

    def abandon(self) -> None:
        """Drop everything, as a crash would; only what the journal has written still becomes durable."""
        if self._engine is not None and self._engine.failed is None:
            self._engine.abandon()  # the loop may have another turn, and the journal is closed then
        self.reception.close()
        self._stop_looking()
        self._connections.abort()
        self._close_journal()

    def _stop_looking(self) -> None:
        if self._serving is not None:
            self._serving.stop()

    def _close_journal(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    # --- callbacks ----------------------------------------------------------------------------------------------------

    def _call_soon_threadsafe(self, callback: Callable[..., object], *args: object) -> None:
        if self._loop.is_closed():
            return
        if self._held is not None:
            self._loop.call_soon_threadsafe(self._hold, callback, args)
        else:
            self._loop.call_soon_threadsafe(callback, *args)

    def _hold(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        """Keep what the journal's threads say until the journal has been read: its methods are for one thread."""
        if self._held is not None:
            self._held.append((callback, args))
        else:
            callback(*args)

    def _failed(self, failure: EngineFailed) -> None:
        if not self.failure.done():
            self.failure.set_result(failure)


def _contents(state: State) -> dict[str, float]:
    return {
        "topics": len(state.topics),
        "partitions": len(state.partitions),
        "groups": len(state.groups),
        "transactions": len(state.transactions),
    }
