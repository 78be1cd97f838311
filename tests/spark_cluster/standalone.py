"""A standalone Spark cluster on one machine: a master and two workers, each a process that can be killed.

Owns these processes and the settings by which a driver uses them. The workers have addresses of their own, in networks
of their own (`networks.py`) or else on the loopback, for Spark starts no speculative copy of a task at the address of
the first one.
"""

from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil
import pyspark

from exacta.demo.processes import ServerProcess, free_port, spark_environment
from tests.spark.lives import ROOT, wait_until
from tests.spark_cluster.networks import Networks

MASTER_HOST = "127.0.0.1"
WORKER_HOSTS = ("127.0.0.2", "127.0.0.3")
MEMORY = "512m"
# A task may fail as often as somebody kills what it runs on. Heaps are small: there are many.
SETTINGS = {
    "spark.driver.memory": MEMORY,
    "spark.executor.memory": MEMORY,
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.task.maxFailures": "20",
}


class Standalone:
    """The cluster; a context in which it runs."""

    def __init__(self, directory: Path, networks: Networks | None = None) -> None:
        """Choose ports; nothing runs yet. With `networks` each worker is in one of its own."""
        self._directory = directory
        self._networks = networks
        self._port = free_port()
        self.host = MASTER_HOST if networks is None else networks.host
        self.master = f"spark://{self.host}:{self._port}"
        self.settings = {**SETTINGS, "spark.driver.host": self.host, "spark.driver.bindAddress": self.host}
        self.name = "a Spark cluster" if networks is None else "a Spark cluster, its workers in networks of their own"
        ports = ["--port", str(self._port), "--webui-port", str(free_port())]
        self._master = self._process("master", "master.Master", self.host, "--host", self.host, *ports)
        workers = WORKER_HOSTS if networks is None else networks.worker_hosts
        self._workers = {host: self._worker(host) for host in workers}

    def __enter__(self) -> "Standalone":
        """Start all and wait until both workers are registered."""
        try:
            self._master.start()
            self._wait_for(self._master, "I have been elected leader", 1)
            for worker in self._workers.values():
                worker.start()
            self._wait_for(self._master, "Registering worker", len(self._workers))
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all."""
        self.stop()

    def stop(self) -> None:
        """Kill all; there is nothing that they could lose."""
        for process in (self._master, *self._workers.values()):
            _kill_tree(process)

    def kill_worker_of(self, pid: int) -> None:
        """Kill the worker below which a process runs, with its executors and their Python workers, and start it again.

        Raises KeyError where it runs below none.
        """
        above = {each.pid for each in psutil.Process(pid).parents()}
        host = {worker.process.pid: host for host, worker in self._workers.items() if worker.process.pid in above}
        worker = self._workers[host.popitem()[1]]
        registered = self._count(self._master, "Registering worker")
        _kill_tree(worker)
        worker.start()
        self._wait_for(self._master, "Registering worker", registered + 1)

    def _worker(self, host: str) -> ServerProcess:
        own = ["--host", host, "--webui-port", str(free_port()), "--work-dir", str(self._directory / host)]
        room = ["--cores", "8", "--memory", "6g"]
        return self._process(f"worker-{host}", "worker.Worker", host, *own, *room, self.master)

    def _process(self, name: str, main: str, host: str, *arguments: str) -> ServerProcess:
        scratch = self._directory / f"{name}-scratch"
        scratch.mkdir(parents=True)
        home = Path(pyspark.__file__).parent
        environment = {
            **spark_environment(scratch),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_NO_DAEMONIZE": "true",
            # So that executors find the daemon of the tests.
            "PYTHONPATH": str(ROOT),
        }
        where = [] if self._networks is None or host == self.host else self._networks.inside(host)
        command = [*where, str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}", *arguments]
        return ServerProcess(command, self._directory / f"{name}.log", environment)

    def _wait_for(self, process: ServerProcess, text: str, times: int) -> None:
        wait_until(lambda: self._count(process, text) >= times, f"{text!r} in {process.log}")

    def _count(self, process: ServerProcess, text: str) -> int:
        return process.log.read_text(errors="replace").count(text)


def _kill_tree(process: ServerProcess) -> None:
    """Kill a process and all below it, which is looked up first: an orphan is found no more."""
    try:
        root = psutil.Process(process.process.pid)
        tree = root.children(recursive=True)
    except (AssertionError, psutil.NoSuchProcess):
        return  # it was never started, or is gone
    process.kill()
    for each in tree:
        with suppress(psutil.NoSuchProcess):
            each.kill()
