"""The machines: PostgreSQL with its standby, a link to both for each broker, and the brokers as processes."""

import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from exacta.demo.processes import free_port
from tests.cluster.databases import Databases
from tests.cluster.links import Link, Links
from tests.conformance.brokers import BROKER_SETTINGS, HOST

NODE_IDS = (1, 2, 3)
_STOP_TIMEOUT_S = 60.0
_ASK_FOR_S = 2.0
_MOVE_FOR_S = 5.0


class Machine:
    """A process of `exacta serve --postgres`, which is started again on the same ports."""

    def __init__(self, node_id: int, folder: Path, sockets: Sequence[Path], links: Sequence[Link]) -> None:
        self.node_id = node_id
        self.links = links
        """One for each host of PostgreSQL."""
        self.address = f"{HOST}:{free_port()}"
        self.pulsar = f"{HOST}:{free_port()}"
        self._log = folder / f"broker-{node_id}.log"
        self._command = [
            *(sys.executable, "-m", "exacta.cli", "serve", "--node-id", str(node_id)),
            *("--postgres", f"postgresql://postgres@/postgres?host={','.join(map(str, sockets))}"),
            *("--data", str(folder / str(node_id))),
            *("--listen", self.address, "--pulsar-listen", self.pulsar),
            *(part for each in BROKER_SETTINGS for part in ("--set", each)),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; whether and when it serves is seen by its clients."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        """End it by SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it by SIGTERM; raises TimeoutExpired where it does not end."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(_STOP_TIMEOUT_S)

    def pause(self) -> None:
        """Stop it in the midst of whatever it does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def move(self) -> bool:
        """Let another broker lead, as an operator does by this one; False: none could be moved to in time."""
        asked = [
            sys.executable,
            "-m",
            "exacta.cli",
            "cluster",
            "move",
            "-b",
            self.address,
            "--timeout",
            f"{_MOVE_FOR_S}",
        ]
        return subprocess.run(asked, capture_output=True, check=False).returncode == 0

    @property
    def exit_code(self) -> int | None:
        """Return the code with which it has ended, or None."""
        assert self._process is not None
        return self._process.poll()

    @property
    def found_no_database(self) -> bool:
        """Return whether that is why it has ended."""
        return "exacta: no PostgreSQL is reached" in self._log.read_text().splitlines()[-1]

    def end(self) -> None:
        """Leave nothing of it."""
        if self._process is not None:
            self.kill()


class Machines:
    """All of them."""

    def __init__(self, databases: Databases, brokers: dict[int, Machine]) -> None:
        self.databases = databases
        self.brokers = brokers
        self.bootstrap = ",".join(each.address for each in brokers.values())
        self.pulsar_url = f"pulsar://{','.join(each.pulsar for each in brokers.values())}"

    def start_ended(self) -> list[Machine]:
        """Start what has ended by itself, as a supervisor does: a broker that begins and finds no database ends."""
        ended = [each for each in self.brokers.values() if each.exit_code is not None]
        for each in ended:
            assert each.found_no_database, "a broker has ended by itself"
            each.start()
        return ended

    def fail_over(self) -> None:
        """Kill the database, and let its standby take over."""
        new = self.databases.fail_over()
        for each in self.brokers.values():
            each.links[new].target = self.databases.servers[new].folder

    def leading(self) -> int | None:
        """Return the node id of the leader, as a client is told; None: nobody says."""
        # Each call has a client of its own: an old one asks an old leader first.
        with contextlib.suppress(KafkaException):
            client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0, "error_cb": lambda error: None})
            node_id = client.list_topics(timeout=_ASK_FOR_S).controller_id
            return node_id if node_id in self.brokers else None
        return None


@contextlib.contextmanager
def three_machines(folder: Path) -> Iterator[Machines]:
    """Run PostgreSQL with a synchronous standby, and three brokers."""
    links = Links()
    sockets = Path(tempfile.mkdtemp(prefix="pg-"))  # the path of a socket is short
    brokers: dict[int, Machine] = {}
    try:
        with Databases() as databases:
            for node_id in NODE_IDS:
                mine = [sockets / f"{node_id}{host}" for host in "ab"]
                for each in mine:
                    each.mkdir()
                ways = [links.open(one, server.folder) for one, server in zip(mine, databases.servers, strict=True)]
                brokers[node_id] = Machine(node_id, folder, mine, ways)
            for broker in brokers.values():
                broker.start()
            machines = Machines(databases, brokers)
            deadline = time.monotonic() + 60
            while machines.leading() is None:
                assert time.monotonic() < deadline, "no broker leads"
            try:
                yield machines
            finally:
                for broker in brokers.values():
                    broker.end()
    finally:
        links.close()
        shutil.rmtree(sockets, ignore_errors=True)
