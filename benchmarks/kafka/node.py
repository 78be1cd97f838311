"""Configure and command one KRaft node of Apache Kafka: broker and controller in one process.

Defaults of the distribution throughout, JVM options and heap included, but for what a single node cannot have
(replication factors of 1) and the rebalance delay, which would make every first join of a group wait three seconds.
In particular Kafka syncs nothing to disk before it answers: that is its default, and what it is compared with here.
A node that is one of several is given its number, all nodes' controllers, and what differs then (`cluster.py`); one
with `secured` has listeners with TLS and SASL on the ports after its own.
"""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.kafka.distribution import KafkaUnavailableError

if TYPE_CHECKING:
    from benchmarks.kafka.security import Secured

HOST = "127.0.0.1"
CLUSTER_ID = "ZXhhY3RhLWJlbmNobWFyaw"
"""Any 16 bytes in URL-safe Base64 without padding."""
HEAP = ("-Xmx1G", "-Xms1G")
JVM_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
FORMAT_TIMEOUT_S = 120
PLAINTEXT = "PLAINTEXT"
SECURED_LISTENERS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""The secured listeners, on the ports after the plain one, in this order."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """Name what a node needs: the jars, a folder of its own, two ports, and properties that override the defaults.

    `voters` are the controllers of all nodes (`id@host:port`), empty for a node on its own. `format_arguments` go to
    the storage tool (`--feature transaction.version=1`, say).
    """

    jars: Path
    folder: Path
    port: int
    controller_port: int
    overrides: Sequence[str] = ()
    node_id: int = 1
    voters: Sequence[str] = ()
    heap: Sequence[str] = HEAP
    secured: "Secured | None" = None
    format_arguments: Sequence[str] = ()

    @property
    def bootstrap(self) -> str:
        """Return the address for clients."""
        return f"{HOST}:{self.port}"

    @property
    def listeners(self) -> Mapping[str, str]:
        """Return the addresses for clients by security protocol."""
        names = (PLAINTEXT, *SECURED_LISTENERS) if self.secured else (PLAINTEXT,)
        return {name: f"{HOST}:{self.port + index}" for index, name in enumerate(names)}

    def properties(self) -> str:
        """Return the text of the node's server.properties; later lines win, so overrides come last."""
        controller = f"{HOST}:{self.controller_port}"
        listeners = ",".join(
            f"{name}://{address}" for name, address in {**self.listeners, "CONTROLLER": controller}.items()
        )
        protocols = ",".join(f"{name}:{name}" for name in self.listeners)
        quorum = (
            f"controller.quorum.voters={','.join(self.voters)}"
            if self.voters
            else f"controller.quorum.bootstrap.servers={controller}"
        )
        lines = [
            f"node.id={self.node_id}",
            "process.roles=broker,controller",
            quorum,
            f"listeners={listeners}",
            f"advertised.listeners={listeners}",
            f"listener.security.protocol.map={protocols},CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name=PLAINTEXT",
            "controller.listener.names=CONTROLLER",
            f"log.dirs={self.folder / 'data'}",
            # One node can keep one replica of its internal topics.
            "offsets.topic.replication.factor=1",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1",
            "share.coordinator.state.topic.replication.factor=1",
            "share.coordinator.state.topic.min.isr=1",
            "group.initial.rebalance.delay.ms=0",
            *(self.secured.properties() if self.secured else ()),
            *self.overrides,
        ]
        return "\n".join(lines) + "\n"

    def prepare(self) -> None:
        """Write the configuration and format the storage; raises KafkaUnavailableError if the node's tool refuses."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._configuration.write_text(self.properties())
        if (self.folder / "data" / "meta.properties").exists():
            return
        arguments = ["format", "--cluster-id", CLUSTER_ID, "--config", str(self._configuration)]
        if not self.voters:
            arguments.append("--standalone")
        if self.secured:
            arguments += self.secured.format_arguments()
        arguments += self.format_arguments
        command = self._java("-Xmx256M", main="kafka.tools.StorageTool", arguments=arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_S, check=False)
        if done.returncode != 0:
            reason = (done.stderr or done.stdout).strip().splitlines()
            raise KafkaUnavailableError(
                f"Apache Kafka could not format its storage: {(reason or ['no reason given'])[-1]}"
            )

    def command(self) -> list[str]:
        """Return the command line that runs the prepared node until a signal ends it."""
        return self._java(*self.heap, *JVM_OPTIONS, main="kafka.Kafka", arguments=[str(self._configuration)])

    @property
    def _configuration(self) -> Path:
        return self.folder / "server.properties"

    def _java(self, *options: str, main: str, arguments: Sequence[str]) -> list[str]:
        logs = (f"-Dlog4j2.configurationFile={LOG_CONFIGURATION}", f"-Dkafka.logs.dir={self.folder}")
        return ["java", *options, *logs, "-cp", f"{self.jars}/*", main, *arguments]
