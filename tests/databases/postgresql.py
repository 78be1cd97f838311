"""A real PostgreSQL for tests: the one that `EXACTA_TEST_POSTGRES` names by its folder, or the demo's, without root."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

from exacta.demo.postgresql import PostgresqlMissing, programs, readable, unprivileged
from tests.waiting import wait_until

_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",  # processes are killed here, and never the machine
    "shared_buffers": "16MB",
    "max_connections": "30",
    "jit": "off",
    "autovacuum": "off",
}
START_TIMEOUT_S = 60.0
_ENVIRONMENT = {**os.environ, "LC_ALL": "C"}
_MEMORY, _MEMORY_BYTES = Path("/dev/shm"), 2 << 30


def binaries() -> Path | None:
    """Return the folder of the server's programs, or None where there is none."""
    given = os.environ.get("EXACTA_TEST_POSTGRES")
    if given:
        return Path(given)
    try:
        return programs()
    except PostgresqlMissing:
        return None


class PostgresServer:
    """A server with a data directory of its own, which can be killed and started again."""

    def __init__(
        self,
        programs: Path,
        folder: Path,
        settings: Mapping[str, str],
        primary: "PostgresServer | None",
    ) -> None:
        self._programs = programs
        self._settings = {**_SETTINGS, **settings}
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._as = unprivileged()
        if primary is None:
            made = "initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"
        else:
            made = (
                "pg_basebackup",
                "-d",
                f"{primary.conninfo} application_name=standby",
                "-R",
                "-X",
                "stream",
                "-c",
                "fast",
            )
        self._call(*made, "-D", str(self._data), "--no-sync")

    @property
    def folder(self) -> Path:
        """Return the folder of its socket."""
        return self._folder

    @property
    def conninfo(self) -> str:
        """Return how clients connect to the server."""
        return self._conninfo("postgres")

    def _conninfo(self, database: str) -> str:
        return f"host={self._folder} port={self._settings.get('port', 5432)} dbname={database} user=postgres"

    def new_database(self, name: str) -> str:
        """Create a database, and return how clients connect to it."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self._conninfo(name)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def start(self) -> None:
        """Start it, and return when it serves."""
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._programs / "postgres"), "-D", str(self._data), "-k", str(self._folder), *settings]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_ENVIRONMENT,
                cwd=self._folder,
                **self._as,
            )
        wait_until(self._serves, START_TIMEOUT_S, "PostgreSQL does not start")

    def _serves(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()[-2000:]
        with suppress(psycopg.OperationalError), psycopg.connect(self.conninfo):
            return True
        return False

    def kill(self) -> None:
        """End all of its processes by SIGKILL."""
        if self._process is None:
            return
        server = psutil.Process(self._process.pid)
        # Its processes are in sessions of their own. The first one goes first, so that it starts no others.
        server.suspend()
        processes = [server, *server.children(recursive=True)]
        for each in processes:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        self._process.wait()
        psutil.wait_procs(processes, timeout=30)
        self._process = None

    def restart_killed(self) -> None:
        """Kill it, and start it again."""
        self.kill()
        self.start()

    def _call(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=_ENVIRONMENT,
            cwd=self._folder,
            **self._as,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def a_server(
    primary: PostgresServer | None = None, *, in_memory: bool = False, **settings: str
) -> Iterator[PostgresServer]:
    """Yield a running server with these settings, maybe a standby; nothing of it is left afterwards.

    `in_memory`, it has its files in memory where there is room: its syncs cost nothing then.
    """
    found = binaries()
    assert found is not None, "there is no PostgreSQL: see `EXACTA_TEST_POSTGRES`"
    # Not in pytest's folder, which other users may not enter; and the path of a socket is short.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=_memory() if in_memory else None))
    try:
        if user := unprivileged():
            os.chown(folder, user["user"], user["group"])
            found = readable(found, folder)
        server = PostgresServer(found, folder, settings, primary)
        try:
            server.start()
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _memory() -> Path | None:
    has_room = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _MEMORY_BYTES
    return _MEMORY if has_room else None
