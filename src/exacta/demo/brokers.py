"""Several brokers over one log, which PostgreSQL keeps: for the demo they are one broker that is never away for long.

This module owns starting them, and which of them is killed: the one that leads, as far as a client can tell.
"""

from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from exacta.demo.postgresql import Postgresql
from exacta.demo.processes import BrokerProcess, free_port

_ASK_FOR_S = 5.0
_FIRST_NODE_ID = 1


class Brokers:
    """Brokers that are started, killed and stopped together, or one at a time. See `BrokerProcess`."""

    def __init__(self, count: int, work: Path, *, for_pulsar: bool) -> None:
        """They keep caches and logs in the work directory; nothing is started yet."""
        self._database = Postgresql(free_port(), work / "postgresql.log")
        self._runs = False
        self.processes = [
            BrokerProcess(
                work / f"broker-{node_id}",
                free_port(),
                work / f"broker-{node_id}.log",
                free_port() if for_pulsar else None,
                ["--postgres", self._database.url, "--node-id", str(node_id), "--set", f"broker.rack=rack-{node_id}"],
            )
            for node_id in range(_FIRST_NODE_ID, _FIRST_NODE_ID + count)
        ]
        self._started: set[int] = set()
        self.bootstrap_servers = ",".join(each.bootstrap_servers for each in self.processes)
        urls = [each.pulsar_url.removeprefix("pulsar://") for each in self.processes if each.pulsar_url]
        self.pulsar_url = f"pulsar://{','.join(urls)}" if urls else None

    @property
    def log(self) -> Path:
        """The log file of the first broker that has ended, or of the first of all."""
        return next((each for each in self._running() if each.exit_code() is not None), self.processes[0]).log

    def start(self) -> None:
        """Start PostgreSQL, and each broker that does not run. Raises PostgresqlMissing."""
        if not self._runs:
            self._database.start()
            self._runs = True
        for number, each in enumerate(self.processes):
            if number not in self._started or each.exit_code() is not None:
                each.start()
                self._started.add(number)

    def exit_code(self) -> int | None:
        """Return the exit code of a broker that has ended, or None while all run."""
        return next((code for each in self._running() if (code := each.exit_code()) is not None), None)

    def _running(self) -> list[BrokerProcess]:
        return [self.processes[number] for number in sorted(self._started)]

    def kill_one(self) -> str:
        """Kill the broker that leads, and say which one that was; where nobody can tell, the first."""
        number = self._leading()
        self.processes[number or 0].kill()
        return f"broker {(number or 0) + _FIRST_NODE_ID}" + (", which leads" if number is not None else "")

    def _leading(self) -> int | None:
        try:
            client = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
            number = int(client.list_topics(timeout=_ASK_FOR_S).controller_id) - _FIRST_NODE_ID
        except KafkaException:
            return None
        return number if 0 <= number < len(self.processes) else None

    def stop(self) -> None:
        """Stop all, the followers first, and PostgreSQL."""
        for number in self._started:
            self.processes[number].stop()
        self._database.stop()
