"""A real PostgreSQL for tests: found on the machine, or unpacked from Debian's packages, without root.

    python -m tests.databases.postgresql

finds one, or downloads the packages that are missing here and unpacks them into the cache of the repository. It ends
with the exit code 1, and says what is missing, where neither can be done. The order is: the folder that
`EXACTA_TEST_POSTGRES` names, the cache, Debian's own folder, `PATH`.

PostgreSQL refuses to run as root. There it runs as the user `postgres`, or as `nobody` where there is none.
"""

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg import sql

from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "postgresql"
_DEBIAN = "usr/lib/postgresql/*/bin"
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",  # processes are killed here, and never the machine
    "shared_buffers": "16MB",
    "max_connections": "30",
    "jit": "off",
    "autovacuum": "off",
}
START_TIMEOUT_S = 60.0
_MEMORY, _MEMORY_BYTES = Path("/dev/shm"), 2 << 30


def binaries() -> Path | None:
    """Return the folder of the server's programs, or None where there is none."""
    given = os.environ.get("EXACTA_TEST_POSTGRES")
    on_path = shutil.which("postgres")
    candidates = [
        *([Path(given)] if given else []),
        *sorted(CACHE.glob(_DEBIAN)),
        *sorted(Path("/").glob(_DEBIAN), reverse=True),
        *([Path(on_path).resolve().parent] if on_path else []),
    ]
    return next((each for each in candidates if (each / "initdb").exists()), None)


def unpack() -> None:
    """Download Debian's packages of PostgreSQL, and what they need here, and unpack them into the cache."""
    for tool in ("apt-get", "apt-cache", "dpkg"):
        if shutil.which(tool) is None:
            raise SystemExit(f"there is no PostgreSQL, and no {tool} to get one: put `postgres` and `initdb` on PATH")
    depends = _output("apt-cache", "depends", "postgresql")
    version = re.search(r"Depends: (postgresql-\d+)", depends)
    if version is None:
        raise SystemExit("there is no PostgreSQL, and the lists of packages do not name it: run `apt-get update` first")
    planned = _output("apt-get", "--print-uris", "--yes", "--no-install-recommends", "install", version[1])
    names = sorted(set(re.findall(r"([a-z0-9][a-z0-9.+-]*)_\S+\.deb\b", planned)) | {version[1]})
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        _output("apt-get", "download", *names, cwd=folder)
        for package in Path(folder).glob("*.deb"):
            _output("dpkg", "-x", str(package), str(CACHE))


def _output(*command: str, cwd: str | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def _user() -> str | None:
    """Return the user that the server runs as, or None for this process's own."""
    if os.geteuid() != 0:
        return None
    known = {each.pw_name for each in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


class PostgresServer:
    """A server with a data directory of its own, which can be killed and started again."""

    def __init__(
        self,
        programs: Path,
        folder: Path,
        user: str | None,
        settings: Mapping[str, str],
        primary: "PostgresServer | None",
    ) -> None:
        self._programs = programs
        self._settings = {**_SETTINGS, **settings}
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._as: dict[str, Any] = {}
        if user is not None:
            entry = pwd.getpwnam(user)
            self._as = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
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
                env=self._environment,
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

    @property
    def _environment(self) -> Mapping[str, str]:
        libraries = [str(path) for above in self._programs.parents[2:3] for path in above.glob("*-linux-*")]
        found = {"PATH": f"{self._programs}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C"}
        return {**found, "LD_LIBRARY_PATH": os.pathsep.join(libraries)} if libraries else found

    def _call(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=self._environment,
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
    programs = binaries()
    assert programs is not None, "there is no PostgreSQL; `python -m tests.databases.postgresql` gets one"
    user = _user()
    # Not in pytest's folder, which other users may not enter; and the path of a socket is short.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=_memory() if in_memory else None))
    try:
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
            programs = _within_reach(programs, folder)
        server = PostgresServer(programs, folder, user, settings, primary)
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


def _within_reach(programs: Path, folder: Path) -> Path:
    """Return the programs, copied if another user may not enter the repository: root's home is often closed."""
    if not programs.is_relative_to(CACHE) or all(part.stat().st_mode & 0o001 for part in (CACHE, *CACHE.parents)):
        return programs
    shutil.copytree(CACHE, folder / "programs", symlinks=True)
    return folder / "programs" / programs.relative_to(CACHE)


if __name__ == "__main__":
    if binaries() is None:
        unpack()
    found = binaries()
    if found is None:
        sys.exit("Debian's packages of PostgreSQL were unpacked, and hold no server")
    print(f"PostgreSQL: {found}")
