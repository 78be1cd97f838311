"""Several KRaft nodes of Apache Kafka on one machine, each of which can be killed and started again.

Owns the nodes' processes and what differs from a node on its own: replication factor 3 and `min.insync.replicas` 2
(as far as there are nodes), small heaps, few partitions in the internal topics, and a killed broker's leadership given
to others after four seconds instead of nine. All nodes are brokers and controllers; the quorum survives one loss of
three. Nothing here runs clients' load, and no node is started again by itself.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from benchmarks.clients import settings
from benchmarks.kafka.node import HOST, PLAINTEXT, SECURED_LISTENERS, Node
from benchmarks.processes import Server, free_rows

if TYPE_CHECKING:
    from benchmarks.kafka.security import Secured

HEAP = ("-Xmx512M", "-Xms256M")
READY_TIMEOUT_S = 120.0
ANSWER_TIMEOUT_S = 2.0
POLL_S = 0.1


class Cluster:
    """`count` nodes under `folder`, numbered from 1; a context in which they run.

    Ports are taken from `first_port` on, node by node: the plain listener, with `secured` three more, the controller.
    """

    def __init__(
        self,
        folder: Path,
        jars: Path,
        *,
        count: int = 3,
        first_port: int | None = None,
        secured: "Secured | None" = None,
        overrides: Sequence[str] = (),
        format_arguments: Sequence[str] = (),
    ) -> None:
        """Choose ports and lay out the nodes; nothing runs yet."""
        each = 2 + (len(SECURED_LISTENERS) if secured else 0)
        ports = free_rows(count, each) if first_port is None else range(first_port, first_port + count * each, each)
        controllers = [port + each - 1 for port in ports]
        voters = [f"{index}@{HOST}:{port}" for index, port in enumerate(controllers, 1)]
        self._servers: dict[int, Server] = {}
        self.nodes = {
            index: Node(
                jars=jars,
                folder=folder / f"node-{index}",
                port=port,
                controller_port=controller,
                overrides=[*_shared_properties(count), *overrides],
                node_id=index,
                voters=voters,
                heap=HEAP,
                secured=secured,
                format_arguments=format_arguments,
            )
            for index, (port, controller) in enumerate(zip(ports, controllers, strict=True), 1)
        }

    @property
    def bootstrap(self) -> str:
        """Return the plain addresses of all nodes."""
        return self.bootstrap_of(PLAINTEXT)

    def bootstrap_of(self, protocol: str) -> str:
        """Return the addresses of all nodes for a security protocol."""
        return ",".join(node.listeners[protocol] for node in self.nodes.values())

    def start(self) -> None:
        """Format what is not formatted, start all nodes and wait until they are a cluster; raises ServerFailedError."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(Node.prepare, self.nodes.values()))
        for index in self.nodes:
            self._run(index)
        self.wait_until_whole()

    def kill(self, index: int) -> None:
        """End node `index` by SIGKILL, as a crash would; ended already is fine."""
        server = self._servers.pop(index, None)
        if server is not None:
            server.kill()

    def restart(self, index: int) -> None:
        """Start node `index` again on its data, without waiting for it (`wait_until_whole` does)."""
        self.kill(index)
        self._run(index)

    def process(self, index: int) -> psutil.Process:
        """Return the process of node `index`: to be stopped for a while (SIGSTOP), or looked at."""
        return self._servers[index].process

    @property
    def running(self) -> list[int]:
        """Return the numbers of the nodes whose process runs."""
        return [index for index, server in self._servers.items() if server.alive()]

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the number of the node that leads a partition (`__transaction_state`, say); -1 where none does."""
        topics = self._metadata(list(self.nodes), topic).topics
        return int(topics[topic].partitions[partition].leader)

    def wait_until_whole(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until every node that was started is in the cluster and no partition lacks one of its replicas there.

        Only then may the next node be killed without losing a majority. Raises ServerFailedError.
        """
        started = list(self._servers)
        for index in started:
            self._servers[index].wait_until(lambda: self._is_whole(started), timeout_s, POLL_S)

    def stop(self) -> None:
        """End all nodes, in order; those that take too long are killed."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(Server.stop, self._servers.values()))
        self._servers.clear()

    def __enter__(self) -> "Cluster":
        """Start all nodes."""
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all nodes."""
        self.stop()

    def _run(self, index: int) -> None:
        node = self.nodes[index]
        self._servers[index] = Server(node.command(), node.folder / "log")

    def _is_whole(self, started: Sequence[int]) -> bool:
        try:
            metadata = self._metadata(started)
        except KafkaException:
            return False
        replicas = [partition for topic in metadata.topics.values() for partition in topic.partitions.values()]
        return set(started) <= set(metadata.brokers) and all(
            set(partition.replicas) & set(started) <= set(partition.isrs) for partition in replicas
        )

    def _metadata(self, through: Sequence[int], topic: str | None = None) -> Any:
        """Ask one of the nodes; a new client each time, for one that met a dead broker would remember it."""
        servers = ",".join(self.nodes[index].bootstrap for index in through)
        client = AdminClient(settings(servers, reconnect_backoff_max_ms=100))
        return client.list_topics(topic, timeout=ANSWER_TIMEOUT_S)


def _shared_properties(count: int) -> list[str]:
    copies, needed = min(3, count), min(2, count)
    return [
        f"default.replication.factor={copies}",
        f"min.insync.replicas={needed}",
        f"offsets.topic.replication.factor={copies}",
        f"transaction.state.log.replication.factor={copies}",
        f"transaction.state.log.min.isr={needed}",
        # 50 each by default: on one machine only a longer start and a longer failover.
        "offsets.topic.num.partitions=12",
        "transaction.state.log.num.partitions=12",
        "broker.heartbeat.interval.ms=1000",
        "broker.session.timeout.ms=4000",
    ]
