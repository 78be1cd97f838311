"""The brokers that a Spark cluster writes to: one Exacta, or three nodes of Apache Kafka; one at a time dies."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from tests.conformance.brokers import BROKER_SETTINGS, ON_KAFKA, TRANSACTION_VERSION, broker_name, exacta_process


class OneBroker:
    """A broker in a process of its own."""

    connection: Mapping[str, str] = {}

    def __init__(self, process) -> None:
        self.bootstrap = process.bootstrap
        self.name = broker_name()
        self.kill, self.start = process.kill, process.start


class ThreeNodes:
    """A cluster of replication factor 3, to which Spark speaks by SASL and TLS."""

    def __init__(self, cluster, secured) -> None:
        self._cluster = cluster
        self._next = cycle(cluster.nodes)
        self._killed = 0
        # The tests themselves, which make and read topics, come in by the plain listener.
        self.bootstrap = cluster.bootstrap
        self.name = f"three nodes of {broker_name()}, by SASL_SSL"
        user, password = next(iter(secured.accounts.items()))
        login = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{user}" '
        self.connection = {
            "kafka.bootstrap.servers": cluster.bootstrap_of("SASL_SSL"),
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.sasl.jaas.config": f'{login}password="{password}";',
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": str(secured.folder / "ca.pem"),
        }

    def kill(self) -> None:
        """Kill the next node: each leads partitions and coordinates transactions."""
        self._killed = next(self._next)
        self._cluster.kill(self._killed)

    def start(self) -> None:
        """Start it again, and wait until it has caught up."""
        self._cluster.restart(self._killed)
        self._cluster.wait_until_whole()


@contextmanager
def some_brokers(folder: Path, host: str) -> Iterator[OneBroker | ThreeNodes]:
    """Run brokers on empty data: Exacta on `host`, the nodes of Kafka on the loopback."""
    if not ON_KAFKA:
        with exacta_process(folder, host) as process:
            yield OneBroker(process)
        return
    from benchmarks.kafka.cluster import Cluster
    from benchmarks.kafka.distribution import fetch
    from benchmarks.kafka.node import HOST
    from benchmarks.kafka.security import Secured

    secured = Secured.at(folder / "secrets", HOST)
    feature = ["--feature", f"transaction.version={TRANSACTION_VERSION}"]
    cluster = Cluster(folder / "nodes", fetch(), secured=secured, overrides=BROKER_SETTINGS, format_arguments=feature)
    with cluster:
        yield ThreeNodes(cluster, secured)
