"""A real broker inside the test process: its own thread and event loop, a free port, a directory of its own.

It is the server of `exacta serve`, durable on disk, and nothing of it is left after the `with`. It can be stopped,
killed and started again meanwhile, as often as a test likes (docs/how-to/testing.md).

Theory of operation. A start makes a thread, which runs a loop with one server until the broker is stopped or killed, or
its journal fails. Port, directory and clock belong to the Broker and outlive the server. A lock lets one thread at a
time begin or end the broker: a fault may restart it from a thread of its own.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from msgspec.structs import replace

from exacta.client.routing import Client
from exacta.client.security import Cluster, Security
from exacta.config.options import configure
from exacta.core.commands import Command
from exacta.front.doors import Endpoint
from exacta.ports.log import Log
from exacta.server.door_options import doors_of
from exacta.server.errors import ServerError
from exacta.server.event_loop import new_event_loop
from exacta.server.fronts import fronts_with
from exacta.server.journals import open_local
from exacta.server.listeners import DEFAULT_HOST
from exacta.server.seams import Seams
from exacta.server.server import Server
from exacta.testing.access import Access
from exacta.testing.authority import Authority
from exacta.testing.clock import MovableClock
from exacta.testing.directory import DataDirectory
from exacta.testing.fault_commands import Faults
from exacta.testing.faults import Armed
from exacta.testing.faulty_connection import FaultyConnection
from exacta.testing.faulty_files import FaultyFiles
from exacta.testing.reachable import Reachable

T = TypeVar("T")

logger = logging.getLogger("exacta.testing")


class Broker(Reachable):
    """An embedded broker; start it by `with` or `async with`, or by `start` and `close`.

    `Questions` has what a test may ask it. `clock` moves its time, and `faults` lets things go wrong.

    The broker keeps its data and its port when it is started again, after `stop` or `kill` or by `restart`. `data` is
    the directory of the log. Without it the log lies in a temporary directory, which `close` or the end of the `with`
    removes, or else the end of the Broker object or of the process. Options go by Kafka's names, with underscores
    (`num_partitions=3`) or in `config` (`{"num.partitions": 3}`).

    The broker listens on `host`, by default for this machine alone, at `port`, and 0 takes a free one. With
    `pulsar=True` it serves Apache Pulsar clients, too, at `pulsar_port` (`pulsar_url`) and by HTTP (`web_url`). Pulsar
    needs the extra `exacta-log[pulsar]`. Where other machines can connect, `allow_anonymous` must name the doors.

    With `tls=True` Kafka clients speak TLS (`security.protocol=SSL`), and Pulsar clients can, too (`pulsar_tls_url`,
    `web_tls_url`). The broker makes an authority of its own: clients trust the file `tls_ca`, and `tls_certificate`
    gives them certificates, which `ssl_client_auth="required"` asks for. It needs the extra `exacta-log[testing]`.

    With `users={"alice": "secret"}` Kafka clients log in by SCRAM or PLAIN (`security.protocol=SASL_PLAINTEXT`, with
    `tls=True` SASL_SSL), and Pulsar clients by name and password. With `acls=["User:alice Read Write --topic orders"]`
    access rules are on, each written as the arguments of `exacta acls add`. `faults.revoke` takes them away. Users and
    rules are made at the first start. The kit's own questions are always answered.

    Clients see a restart as they see one of Apache Kafka: connections break, and members of groups and open
    transactions go on. A transactional producer of librdkafka may take a second longer for its first
    `send_offsets_to_transaction` then, unless `metadata.recovery.strategy` is `none` (its issue 5511).

    Raises ConfigurationError for a wrong option, ValueError for a wrong port, rule or empty `data`, and from `start`
    ServerError where the server cannot be had.
    """

    def __init__(
        self,
        data: str | Path | None = None,
        *,
        host: str = DEFAULT_HOST,
        port: int = 0,
        pulsar: bool = False,
        pulsar_port: int = 0,
        tls: bool = False,
        users: Mapping[str, str] | None = None,
        acls: Iterable[str] | None = None,
        config: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        authority = Authority(host) if tls else None
        of_authority = {} if authority is None else authority.options()
        given = {name.replace("_", "."): value for name, value in {**(config or {}), **options}.items()}
        access = Access(users, acls)
        if acls is not None and users is None and given.get("ssl.client.auth") != "required":
            raise ValueError("acls need users, or tls=True with ssl_client_auth='required': nobody else has a name")
        self._access = access
        self._configuration = configure(of_authority | access.options(given))
        self._to_make: list[Command] | None = None
        """The commands that are decided before clients are let in; None: those that make the users and rules."""
        self._directory = DataDirectory(data)
        for each in (port, pulsar_port):
            if not isinstance(each, int) or isinstance(each, bool) or not 0 <= each <= 65535:
                raise ValueError(f"port must be a number from 0 to 65535, not {each!r}")
        any_port = Endpoint(host, 0)
        endpoints = {"listen": Endpoint(host, port)}
        if pulsar:
            endpoints |= {"pulsar_listen": Endpoint(host, pulsar_port), "web_listen": any_port}
        if pulsar and (tls or self._configuration.tlsCertificateFilePath):
            endpoints |= {"pulsar_tls_listen": any_port, "web_tls_listen": any_port}
        super().__init__(doors_of(endpoints), authority, access.login())
        self.clock = MovableClock(self._move_clock)
        """The broker's time, which a test can move."""
        self._armed = Armed()
        self.faults = Faults(self, self._armed)
        """The faults that a test asks for."""
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Server | None = None
        self._end: asyncio.Future[bool] | None = None
        self._to_be_ended: bool | None = None  # cleanly or not: said while the broker was still starting

    def __repr__(self) -> str:
        """Return address and state; the address is known from the first start on."""
        listen = self._doors[0].endpoint
        at = f" at {listen}" if listen.port else ""
        return f"<exacta.Broker{at}, {'running' if self.is_running else 'not running'}>"

    @property
    def data(self) -> Path:
        """The data directory. Where it is a temporary one: from the first start on, until `close`."""
        return self._directory.path

    def start(self) -> "Broker":
        """Start and return once clients can connect."""
        with self._lock:
            self._start()
        return self

    def _start(self) -> None:
        if self._thread is not None:
            raise ServerError("the broker is running already")
        if is_new := self._directory.make():
            self._to_make = None
        ready: Future[None] = Future()
        self._to_be_ended = None
        self._thread = threading.Thread(target=self._run, args=(ready,), name="exacta-broker", daemon=True)
        try:
            self._thread.start()
            ready.result()
        except BaseException:
            self._finish(clean=True)
            if is_new:
                self._directory.remove()
            raise

    def stop(self) -> None:
        """Stop cleanly: answer who waits, write everything down, save the state. Harmless if nothing runs.

        The data stay, in a temporary directory too: `start` goes on with them.
        """
        self._finish(clean=True)

    def kill(self) -> None:
        """Stop as a crash would: nothing flushed or saved, nobody answered. The data stay: `start` recovers them."""
        self._finish(clean=False)

    def restart(self, *, clean: bool = True) -> "Broker":
        """Stop and start again, on the same port with the same data; not `clean`: as after a crash.

        Raises ServerError where the server cannot be had again.
        """
        with self._lock:
            self._finish(clean=clean)
            return self.start()

    def close(self) -> None:
        """Stop cleanly, and remove a temporary directory. A start after it begins with nothing.

        Raises FaultNotMet, when everything else is done, if a fault was armed that nothing has met.
        """
        self._close(check=True)

    def _close(self, *, check: bool) -> None:
        try:
            (self.faults.check if check else self.faults.clear)()
        finally:
            with self._lock:
                self._finish(clean=True)
                self._directory.remove()

    def __enter__(self) -> "Broker":
        return self.start()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close(check=exc_type is None)  # a test that fails for another reason says that one

    async def __aenter__(self) -> "Broker":
        starting = asyncio.ensure_future(asyncio.to_thread(self.start))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                await starting  # it goes on, and nobody would end what it starts
            await asyncio.to_thread(self._close, check=False)
            raise

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, exc_type, exc, traceback)

    # --- the broker's thread ------------------------------------------------------------------------------------------

    def _finish(self, *, clean: bool) -> None:
        with self._lock:
            self._end_thread(clean=clean)

    def _end_thread(self, *, clean: bool) -> None:
        thread = self._thread
        if thread is None:
            return
        self._to_be_ended = clean  # before the look at what it may not have yet
        loop, end = self._loop, self._end
        if loop is not None and end is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed already: the journal has failed
                loop.call_soon_threadsafe(_settle, end, clean)
        _join(thread)
        self._thread = self._loop = self._server = self._end = None

    def _run(self, ready: Future[None]) -> None:
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._main(ready))
        except BaseException as error:  # the thread that waits in `start` raises it
            if ready.done():
                raise
            ready.set_exception(error)

    async def _main(self, ready: Future[None]) -> None:
        loop = asyncio.get_running_loop()
        seams = Seams(
            clock=self.clock.make,
            journal=partial(open_local, files=partial(FaultyFiles, self._armed)),
            fronts=fronts_with(partial(FaultyConnection, self._armed)),
            loopback_has_share=False,
        )
        server = Server(loop, self._configuration, self.data, self._doors, seams)
        server.open()
        await self._make(server)
        await server.start()
        self._doors = server.reception.doors
        end: asyncio.Future[bool] = loop.create_future()
        self._loop, self._server, self._end = loop, server, end
        if self._to_be_ended is not None:
            _settle(end, self._to_be_ended)
        ready.set_result(None)
        await asyncio.wait((end, server.failure), return_when=asyncio.FIRST_COMPLETED)
        if server.failure.done():
            logger.error("the embedded broker has stopped: %s", server.failure.result())
        if server.failure.done() or not end.result():
            server.abandon()
            await asyncio.sleep(0)  # the loop closes the connections in its next turn
        else:
            await server.stop()

    async def _make(self, server: Server) -> None:
        """Let users and rules be there before any client comes: those of the first start, or those to be given back."""
        commands, self._to_make = (self._access.commands() if self._to_make is None else self._to_make), []
        if commands:
            durable = asyncio.Event()
            server.engine.submit(commands, lambda answers: durable.set())
            await durable.wait()

    def give_back(self, commands: Sequence[Command]) -> None:
        """See `FaultyBroker`."""
        with self._lock:
            try:
                self.in_engine(lambda engine: engine.submit(commands, lambda answers: None))
            except ServerError:  # it does not run
                self._to_make = None if self._to_make is None else [*self._to_make, *commands]

    def _move_clock(self, move: Callable[[], None]) -> None:
        """Change the clock on the broker's thread, or here if none runs; see `MovableClock`.

        A fault of the disk may stop the broker meanwhile. If one starts it again, it does what is due then.
        """
        is_moved = False

        def step(engine: Log) -> None:
            move_once()
            engine.clock_was_moved()

        def move_once() -> None:
            nonlocal is_moved
            if not is_moved:
                move()
                is_moved = True

        while True:
            with self._lock:
                if not self.is_running:
                    move_once()
                    return
                with contextlib.suppress(ServerError):
                    self.in_engine(step)
                    return
            self._armed.wait_for_actions()

    def client(self) -> Client:
        """Return a client of the kit's own, which meets no fault; close it after use.

        A broker that a fault lets start again is waited for. Raises ServerError if the broker does not run.
        """
        if not self._runs_now():
            self._armed.wait_for_actions()
            if not self._runs_now():
                raise ServerError("the broker does not run")
        return super().client()

    def _cluster(self) -> Cluster:
        """See `Questions`."""
        cluster = super()._cluster()
        tls = None if self._authority is None else self._authority.kits_own()
        return replace(cluster, security=Security(tls=tls, sasl=self._access.login()))

    def _runs_now(self) -> bool:
        with self._lock:  # a restart is over then
            return self.is_running

    @property
    def is_running(self) -> bool:
        """True from the start until it was stopped, or has crashed."""
        return self._server is not None and self._thread is not None and self._thread.is_alive()

    def wait_until_stopped(self, timeout_s: float = 30.0) -> None:
        """Wait until the broker has stopped by itself, as one does whose disk fails; then it can be started again.

        Raises TimeoutError if it goes on.
        """
        thread = self._thread
        if thread is not None:
            thread.join(timeout_s)
            if thread.is_alive():
                raise TimeoutError(f"the broker still runs after {timeout_s:g} s")
            self._finish(clean=False)

    def in_engine(self, step: Callable[[Log], T]) -> T:
        """Take a step on the broker's thread, and return its result when the state after it is durable.

        Raises ServerError if the broker does not run, or stops meanwhile.
        """
        done: Future[T] = Future()

        def take(engine: Log) -> None:
            try:
                result = step(engine)
            except BaseException as error:  # noqa: BLE001  # it belongs to the thread that asked
                done.set_exception(error)
            else:
                engine.confirm(lambda: done.set_result(result))

        with self._lock:
            loop, server, thread = self._loop, self._server, self._thread
            if loop is None or server is None or thread is None:
                raise ServerError("the broker does not run")
            with contextlib.suppress(RuntimeError):  # the loop is closed already: the journal has failed
                log: Log = server.engine
                loop.call_soon_threadsafe(take, log)
            while not done.done() and thread.is_alive():
                with contextlib.suppress(TimeoutError):
                    done.exception(0.1)
            if not done.done():
                raise ServerError("the broker has stopped")
            return done.result()


def _join(thread: threading.Thread) -> None:
    """Wait until a thread has ended, also one whose `start` was interrupted before the thread was there."""
    while thread in threading.enumerate():
        try:
            thread.join()
        except RuntimeError:  # it is about to begin
            time.sleep(0.001)


def _settle(end: asyncio.Future[bool], clean: bool) -> None:
    if not end.done():
        end.set_result(clean)
