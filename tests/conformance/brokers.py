"""The broker under test: Exacta unless the environment asks for another.

- nothing set: an embedded `exacta.Broker` for the plain scenarios, `exacta serve` where the broker must die;
- EXACTA_TEST_BROKER=kafka: one Apache Kafka node in both places (Java and Maven; the jars come as `make bench-kafka`
  gets them), so that the scenarios can be held against the reference; EXACTA_TEST_TRANSACTION_VERSION: the level of its
  feature `transaction.version` (2 unless it is set: KIP-890), also of Exacta;
- EXACTA_TEST_TRANSACTION_BUFFER=sidecar: Exacta whose topics are sidecar topics, unless a scenario says otherwise;
- EXACTA_TEST_BOOTSTRAP=HOST:PORT: whatever answers there, for the plain scenarios; those that kill are skipped.

A process is always started again on the same port and data, as a supervisor would.
"""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

HOST = "127.0.0.1"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
GIVEN_BOOTSTRAP = os.environ.get("EXACTA_TEST_BOOTSTRAP")
ON_KAFKA = os.environ.get("EXACTA_TEST_BROKER") == "kafka"
TRANSACTION_VERSION = os.environ.get("EXACTA_TEST_TRANSACTION_VERSION", "2")
TRANSACTION_BUFFER = os.environ.get("EXACTA_TEST_TRANSACTION_BUFFER", "marker")
ON_SIDECAR = TRANSACTION_BUFFER == "sidecar"
"""True: a topic that says nothing is a sidecar topic. No reader waits for a transaction, and no end has a marker."""
EXACTA_SETTINGS = (f"transaction.version={TRANSACTION_VERSION}", f"transaction.buffer={TRANSACTION_BUFFER}")
BROKER_SETTINGS = (
    # A group forms at once instead of waiting for members to come.
    "group.initial.rebalance.delay.ms=0",
    # Members learn of a rebalance by their heartbeats.
    "group.consumer.heartbeat.interval.ms=200",
)
KAFKA_SETTINGS = (
    "group.consumer.min.heartbeat.interval.ms=200",
    # The broker that was killed is still registered: its successor waits until that has run out.
    "broker.session.timeout.ms=3000",
    "broker.heartbeat.interval.ms=500",
    # Transactions whose time is up are looked for every ten seconds otherwise.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=500",
)


def broker_name() -> str:
    """Return what is under test, for reports."""
    if not ON_KAFKA:
        return "Exacta"
    from benchmarks.kafka.distribution import KAFKA_VERSION

    return f"Apache Kafka {KAFKA_VERSION}, transaction.version {TRANSACTION_VERSION}"


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


class BrokerProcess:
    """A broker in a process of its own, which can be killed and started again on the same data."""

    def __init__(self, command: Sequence[str], port: int, log: Path, host: str = HOST) -> None:
        """Remember how to start it; `log` gets what it prints."""
        self.port = port
        self.bootstrap = f"{host}:{port}"
        self._host = host
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def command(self) -> Sequence[str]:
        """How it is started."""
        return self._command

    @property
    def pid(self) -> int:
        """Its process, while it runs."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it listens; raises RuntimeError with the end of its log if it does not."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            if self._process.poll() is not None or time.monotonic() > deadline:
                end = self._log.read_text(errors="replace")[-2_000:]
                self.kill()
                raise RuntimeError(f"the broker did not start: {end}")
            with contextlib.suppress(OSError), socket.create_connection((self._host, self.port), timeout=1):
                return
            # Nothing to wait on but the port itself: short naps between the attempts.
            time.sleep(0.01)

    def kill(self) -> None:
        """End it by SIGKILL, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart_killed(self) -> None:
        """Kill it and start it again."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """End it by SIGTERM; raises RuntimeError if it does not end by itself."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired as late:
            self.kill()
            raise RuntimeError(f"the broker ignored SIGTERM for {STOP_TIMEOUT_S:.0f} s") from late
        self._process = None


@contextlib.contextmanager
def broker_process(
    folder: Path, *, advertised_port: int | None = None, settings: Sequence[str] = ()
) -> Iterator[BrokerProcess]:
    """Run a broker on empty data in `folder`; clients are sent to `advertised_port` where it is given.

    `settings` are options that both brokers have.
    """
    make = _kafka if ON_KAFKA else _exacta
    with _running(make(folder, advertised_port, settings)) as broker:
        yield broker


@contextlib.contextmanager
def exacta_process(folder: Path, host: str = HOST, settings: Sequence[str] = ()) -> Iterator[BrokerProcess]:
    """Run Exacta on an address of this machine, whatever the environment asks for."""
    with _running(_exacta(folder, None, settings, host=host)) as broker:
        yield broker


@contextlib.contextmanager
def kafka_process(folder: Path, *, overrides: Sequence[str] = ()) -> Iterator[BrokerProcess]:
    """Run Apache Kafka, whatever the environment asks for."""
    with _running(_kafka(folder, None, overrides)) as broker:
        yield broker


@contextlib.contextmanager
def _running(broker: BrokerProcess) -> Iterator[BrokerProcess]:
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


@contextlib.contextmanager
def plain_broker(folder: Path) -> Iterator[str]:
    """Run the broker for scenarios without crashes, and hand out its address."""
    if GIVEN_BOOTSTRAP:
        yield GIVEN_BOOTSTRAP
    elif ON_KAFKA:
        with broker_process(folder) as broker:
            yield broker.bootstrap
    else:
        import exacta

        with exacta.Broker(
            transaction_version=int(TRANSACTION_VERSION),
            transaction_buffer=TRANSACTION_BUFFER,
            group_consumer_heartbeat_interval_ms=200,
        ) as embedded:
            yield embedded.bootstrap_servers


def _exacta(folder: Path, advertised_port: int | None, more: Sequence[str] = (), *, host: str = HOST) -> BrokerProcess:
    port = free_port()
    command = [sys.executable, "-m", "exacta.cli", "serve"]
    command += ["--data", str(folder / "data"), "--listen", f"{host}:{port}"]
    if advertised_port is not None:
        command += ["--advertise", f"{HOST}:{advertised_port}"]
    for setting in (*BROKER_SETTINGS, *EXACTA_SETTINGS, *more):
        command += ["--set", setting]
    return BrokerProcess(command, port, folder / "log", host)


def _kafka(folder: Path, advertised_port: int | None, more: Sequence[str] = ()) -> BrokerProcess:
    from benchmarks.kafka import distribution, node

    port, controller_port = free_port(), free_port()
    overrides = [*BROKER_SETTINGS, *KAFKA_SETTINGS, *more]
    if advertised_port is not None:
        controller = f"CONTROLLER://{HOST}:{controller_port}"
        overrides.append(f"advertised.listeners=PLAINTEXT://{HOST}:{advertised_port},{controller}")
    kafka = node.Node(
        jars=distribution.fetch(),
        folder=folder,
        port=port,
        controller_port=controller_port,
        overrides=overrides,
        format_arguments=["--feature", f"transaction.version={TRANSACTION_VERSION}"],
    )
    kafka.prepare()
    return BrokerProcess(kafka.command(), port, folder / "log")
