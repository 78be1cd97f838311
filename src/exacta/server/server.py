"""The composition root: configuration, data directory, journal, engine, listener, and their lives from start to stop.

Owns what is put together and in which order it begins and ends. The only module that knows uvloop. `exacta serve`
(`serve`, below: signals, exit codes) and the embedded broker (`exacta.testing`) run the same `Server`.

Theory of operation. `open` binds the port, so that one that is taken fails before anything else, then recovers the
journal, which may take its time and blocks; only then does `start` accept clients. `stop` is the clean end: no new
clients, no new requests, everybody who waits for records is answered, what has gathered is made durable, the state is
saved, the journal closed, then the connections. `abandon` is the end that a crash would make: nothing is flushed,
nothing is saved. When the journal fails, nothing in memory can be trusted: `failure` is set and whoever runs the server
must abandon it (DESIGN D4).
"""

import asyncio
import base64
import contextlib
import errno
import gc
import ipaddress
import logging
import os
import re
import signal
import socket
import sys
import time
import uuid
from pathlib import Path

import msgspec
from msgspec import Struct

from exacta.adapters.entropy import SystemEntropy
from exacta.adapters.local import LocalJournal, is_journal
from exacta.config.options import Configuration
from exacta.config.retention import retention_rules
from exacta.engine.clock import Clock
from exacta.engine.engine import Engine, EngineFailed
from exacta.engine.upkeep import Schedule
from exacta.front.broker import WILDCARDS, Identity
from exacta.front.connection import FramedConnection
from exacta.front.connection_limits import Admission
from exacta.front.memory import Memory
from exacta.kafka.broker import BrokerContext
from exacta.kafka.connection import Connection
from exacta.ports.authorizer import AllowAll
from exacta.ports.journal import JournalDamaged, JournalError
from exacta.posix import resource
from exacta.records.compaction import compaction
from exacta.records.record_format import KafkaRecordFormat

logger = logging.getLogger("exacta.server")

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092

_BACKLOG = 4096
"""Connections that may wait to be taken; the system allows fewer (Linux: net.core.somaxconn)."""
_FEW_FILES = 4096
_DRAIN_SECONDS = 5.0
JOURNAL_DIRECTORY = "journal"
_META_FILE = "meta.properties"
_META_VERSION = "1"


class ServerError(Exception):
    """The server cannot start or go on; the message is one line for the operator."""


class Endpoint(Struct, frozen=True):
    """A host and a port. An empty host means every address of this machine; port 0 means any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_endpoint(text: str) -> Endpoint:
    """Parse HOST:PORT or [IPv6]:PORT. Raises ValueError with a message for the user."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"expected HOST:PORT, or [HOST]:PORT for IPv6, not {text!r}")
    if not colon or not port.isdecimal():
        raise ValueError(f"expected HOST:PORT, not {text!r}")
    if int(port) > 0xFFFF:
        raise ValueError(f"expected HOST:PORT with a port of at most 65535, not {text!r}")
    return Endpoint(host, int(port))


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop, or asyncio's where there is none."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class Server:
    """One broker on one loop. Call everything on the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        configuration: Configuration,
        data: Path,
        listen: Endpoint,
        advertise: Endpoint | None = None,
    ) -> None:
        self.failure: asyncio.Future[EngineFailed] = loop.create_future()
        """Done when the journal has failed."""
        self.listening = listen
        """Where clients find us, once open: with the real port."""
        self.is_for_all = False
        """Whether other machines can connect, once open."""
        self._loop = loop
        self._configuration = configuration
        self._data = data
        self._listen = listen
        self._advertise = advertise
        self._socket: socket.socket | None = None
        self._listener: asyncio.Server | None = None
        self._journal: LocalJournal | None = None
        self._engine: Engine | None = None
        self._broker: BrokerContext | None = None
        self._connections: set[FramedConnection] = set()
        self._admission = Admission(
            min(configuration.max_connections, _files_allowed() // 2), configuration.max_connections_per_ip, loop.time
        )
        self._deserted = asyncio.Event()
        self._deserted.set()

    # --- beginning ----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Bind the port, recover the journal. Blocks. Raises ServerError, and leaves nothing behind then."""
        self._socket = _bind(self._listen)
        address, port = self._socket.getsockname()[:2]
        self.listening = Endpoint(self._listen.host, port)
        self.is_for_all = not ipaddress.ip_address(address.partition("%")[0]).is_loopback
        try:
            self._recover()
        except BaseException:
            self._close_socket()
            self._close_journal()
            raise

    def _recover(self) -> None:
        was_there = os.path.exists(self._data)  # unlike Path's, it raises nothing where a name is too long or forbidden
        if was_there and not os.path.isdir(self._data):
            raise ServerError(f"the data directory {self._data} is not a directory")
        try:
            self._journal = LocalJournal.open(
                self._data / JOURNAL_DIRECTORY,
                self._call_soon_threadsafe,
                segment_bytes=self._configuration.log_segment_bytes,
                unsynced_writes=not self._configuration.transaction_sync_every_write,
            )
            cluster_id = _cluster_id(self._data / _META_FILE)
            clock = Clock()
            self._engine = Engine(
                self._journal,
                KafkaRecordFormat(),
                scheduler=self._loop,
                clock=clock.now_ms,
                limits=self._configuration.limits(),
                on_failure=self._failed,
                schedule=Schedule(
                    rules=retention_rules(self._configuration),
                    rewriter=compaction,
                    record_clock=clock.least_ms,
                    check_interval_ms=self._configuration.log_retention_check_interval_ms,
                    clean_interval_ms=self._configuration.log_cleaner_backoff_ms,
                ),
            )
        except (JournalError, OSError) as error:
            if not was_there and not os.path.exists(self._data):
                raise ServerError(
                    f"cannot make the data directory {self._data}: {error.__cause__ or error}; name another with --data"
                ) from error
            at_data = "" if isinstance(error, JournalError) else f"cannot use the data directory {self._data}: "
            raise ServerError(with_advice(f"{at_data}{error}")) from error
        except msgspec.DecodeError as error:
            raise ServerError(f"the journal in {self._data} holds what this version cannot read: {error}") from error
        advertised = self._advertise or self.listening
        self._broker = BrokerContext(
            self._engine,
            self._configuration,
            Identity(
                cluster_id=cluster_id,
                advertised_host=advertised.host,
                advertised_port=advertised.port or self.listening.port,
                log_dir=self._data.absolute(),
            ),
            SystemEntropy(),
            Memory(self._configuration, self._loop),
            AllowAll(),
            wall_clock=clock.wall_ms,
        )

    async def start(self) -> None:
        """Accept clients. Raises ServerError."""
        broker, sock = self._broker, self._socket
        assert broker is not None
        assert sock is not None
        try:
            self._listener = await self._loop.create_server(
                lambda: Connection(broker, self._loop, self._register, self._forget), sock=sock, backlog=_BACKLOG
            )
        except OSError as error:
            self.abandon()
            raise ServerError(_cannot_listen(self._listen, error)) from error

    # --- the end ------------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop cleanly; see the module's docstring."""
        engine, journal = self._engine, self._journal
        assert engine is not None
        assert journal is not None
        self._close_socket()
        for connection in self._connections:
            connection.stop_taking_requests()
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
        for connection in list(self._connections):
            connection.close()
        try:
            await asyncio.wait_for(self._deserted.wait(), _DRAIN_SECONDS)
        except TimeoutError:
            for connection in list(self._connections):
                connection.abort()

    def abandon(self) -> None:
        """Drop everything, as a crash would; only what the journal has written still becomes durable."""
        self._close_socket()
        for connection in list(self._connections):
            connection.abort()
        self._close_journal()

    def _close_socket(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _close_journal(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    # --- callbacks ----------------------------------------------------------------------------------------------------

    def _call_soon_threadsafe(self, callback: object, *args: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback, *args)  # type: ignore[arg-type]

    def _failed(self, failure: EngineFailed) -> None:
        if not self.failure.done():
            self.failure.set_result(failure)

    def _register(self, connection: FramedConnection) -> bool:
        if not self._admission.admit(connection.peer_host):
            return False
        self._connections.add(connection)
        self._deserted.clear()
        return True

    def _forget(self, connection: FramedConnection) -> None:
        self._connections.discard(connection)
        self._admission.leave(connection.peer_host)
        if not self._connections:
            self._deserted.set()


def _bind(listen: Endpoint) -> socket.socket:
    host = None if listen.host in WILDCARDS and listen.host != "::" else listen.host
    try:
        found = socket.getaddrinfo(host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ServerError(_cannot_listen(listen, error)) from error
    # A name may have several addresses; clients that resolve it try IPv4 first where both exist.
    family, kind, protocol, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setblocking(False)
        sock.bind(address)
    except OSError as error:
        sock.close()
        raise ServerError(_cannot_listen(listen, error)) from error
    return sock


def _cannot_listen(listen: Endpoint, error: OSError | UnicodeError) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"cannot listen on {listen}: {reason.lower()}"


_ADVICE = {
    errno.ENOSPC: "make room on its file system, then start again",
    errno.EDQUOT: "raise the quota or make room, then start again",
    errno.EFBIG: "let the process write larger files (ulimit -f), then start again",
    errno.EROFS: "its file system is read-only: see in the system's log why, mount it for writing, then start again",
    errno.EACCES: "let the user that runs the server read and write the directory and all in it, then start again",
    errno.EPERM: "let the user that runs the server read and write the directory and all in it, then start again",
    errno.EIO: "the disk fails: see the system's log, and save a copy of the directory before you start again",
    errno.ENOENT: "the directory, or a file in it, was taken away: put it back as it was, then start again",
    errno.ENOTDIR: "name a directory with --data",
    errno.EMFILE: "let the process have more open files (ulimit -n), then start again",
    errno.ENFILE: "let the machine have more open files (fs.file-max), then start again",
}
_ERRNO = re.compile(r"\[Errno (\d+)\]")


def with_advice(reason: str) -> str:
    """Add what the operator can do where the operating system has refused something."""
    if reason.endswith("is in use by another journal"):
        return f"{reason}: stop the server that has it, or name another directory with --data"
    found = _ERRNO.search(reason)
    advice = _ADVICE.get(int(found[1])) if found is not None else None
    return reason if advice is None else f"{reason}; {advice}"


def _cluster_id(path: Path) -> str:
    """Read the cluster's id, or make one and keep it: clients may check that they talk to the same cluster."""
    if path.exists():
        lines = (line.partition("=") for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
        meta = {key: value for key, _, value in lines}
        if meta.get("version") != _META_VERSION or not meta.get("cluster.id"):
            raise ServerError(f"{path} was not written by this version of Exacta")
        return meta["cluster.id"]
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    beside = path.with_suffix(".new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(f"version={_META_VERSION}\ncluster.id={cluster_id}\n")
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return cluster_id


_NEVER_IN_THE_WAY = frozenset({_META_FILE, Path(_META_FILE).with_suffix(".new").name, "lost+found"})


def _refuse_foreign(data: Path) -> None:
    """Raise ServerError where the directory is somebody else's: it holds other things, and no journal.

    A first start that a crash has interrupted leaves our names only. Hidden files, and the `lost+found` of a file
    system that is mounted there, are in nobody's way. Beside a journal there may be anything, as there always might.
    """
    journal = data / JOURNAL_DIRECTORY
    try:
        if not data.is_dir() or (journal.is_dir() and is_journal(os.listdir(journal))):
            return
        foreign = sorted(each for each in os.listdir(data) if each[0] != "." and each not in _NEVER_IN_THE_WAY)
    except OSError:
        return  # opening it says why
    if foreign:
        raise ServerError(
            f"{data} holds other files ({foreign[0]}{', …' if len(foreign) > 1 else ''}) and no data of Exacta: name a "
            "new or empty directory with --data"
        )


# --- the process of `exacta serve` ------------------------------------------------------------------------------------

EXIT_FAILED = 1
_SWITCH_INTERVAL_SECONDS = 0.0005
"""How soon the journal's thread gets the interpreter when a sync returns; Python's own 5 ms would be the latency."""


def serve(configuration: Configuration, data: Path, listen: Endpoint, advertise: Endpoint | None = None) -> int:
    """Run until SIGTERM, SIGINT or SIGHUP; return the process's exit code.

    Says where it listens in one line on stdout.
    """
    configure_logging()
    sys.setswitchinterval(_SWITCH_INTERVAL_SECONDS)
    _allow_many_files(configuration)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        try:
            return runner.run(_serve(configuration, data, listen, advertise))
        except ServerError as error:
            sys.stderr.write(f"exacta: {error}\n")
            return EXIT_FAILED


def _allow_many_files(configuration: Configuration) -> None:
    """Raise the soft limit of file handles to the hard one: each connection has one, and each sealed segment.

    Says so where that is few, or fewer than were asked for.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # where it is unlimited, some systems refuse so many
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    allowed, wanted = _files_allowed(), configuration.max_connections
    if allowed < _FEW_FILES or (wanted != Configuration().max_connections and allowed // 2 < wanted):
        logger.warning(
            "only %d files may be open, so at most %d connections: raise the hard limit (ulimit -Hn, or LimitNOFILE= "
            "of a systemd unit) to twice the connections that there may be",
            allowed,
            min(allowed // 2, wanted),
        )


def _files_allowed() -> int:
    """Return how many files this process may have open, sockets among them: without one, the journal cannot go on."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


async def _serve(configuration: Configuration, data: Path, listen: Endpoint, advertise: Endpoint | None) -> int:
    loop = asyncio.get_running_loop()
    _refuse_foreign(data)
    server = Server(loop, configuration, data, listen, advertise)
    server.open()
    await server.start()
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it, to have us outlive the terminal
        loop.add_signal_handler(signal.SIGHUP, asked.set)
    # What is alive now lives as long as the server: collecting garbage need not look at it.
    gc.collect()
    gc.freeze()
    gc.enable()
    if server.is_for_all:
        logger.warning(
            "%s can be reached from other machines, and there are no logins yet (no TLS, SASL or ACLs): whoever "
            "reaches it can read, write and delete everything",
            server.listening,
        )
    sys.stdout.write(f"exacta: listening on {server.listening}, data in {data}\n")
    sys.stdout.flush()
    asking = asyncio.ensure_future(asked.wait())
    await asyncio.wait((asking, server.failure), return_when=asyncio.FIRST_COMPLETED)
    if not server.failure.done():
        logger.info("stopping")
        await server.stop()
    asking.cancel()
    if server.failure.done():
        server.abandon()
        reason = f"stopped at once, nothing unwritten was acknowledged: {server.failure.result()}"
        raise ServerError(with_advice(reason))
    logger.info("stopped")
    return 0


class _OneLine(logging.Formatter):
    """`2026-01-31T12:00:00.123Z WARNING exacta.kafka message`, a traceback's lines joined by " | "."""

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        return " | ".join(line.strip() for line in super().format(record).splitlines())


def configure_logging() -> None:
    """Log to stderr, one line for each record."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
