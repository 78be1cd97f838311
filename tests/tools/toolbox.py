"""Apache Kafka's own command line tools, and how they are run: in one Java virtual machine, or each as a process.

Owns the tools' main classes, and `Toolbox.java`'s other side. What a tool prints is judged by the tests.
"""

import base64
import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.kafka.distribution import CACHE, KAFKA_VERSION, java_banner
from benchmarks.maven import fetch_jars

HERE = Path(__file__).parent
JAVA = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_TOOLS = "org.apache.kafka.tools."
MAIN_CLASSES = {
    "kafka-acls": _TOOLS + "AclCommand",
    "kafka-broker-api-versions": _TOOLS + "BrokerApiVersionsCommand",
    "kafka-client-metrics": _TOOLS + "ClientMetricsCommand",
    "kafka-cluster": _TOOLS + "ClusterTool",
    "kafka-configs": _TOOLS + "ConfigCommand",
    "kafka-console-consumer": _TOOLS + "consumer.ConsoleConsumer",
    "kafka-console-producer": _TOOLS + "ConsoleProducer",
    "kafka-consumer-groups": _TOOLS + "consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": _TOOLS + "ConsumerPerformance",
    "kafka-delete-records": _TOOLS + "DeleteRecordsCommand",
    "kafka-e2e-latency": _TOOLS + "EndToEndLatency",
    "kafka-features": _TOOLS + "FeatureCommand",
    "kafka-get-offsets": _TOOLS + "GetOffsetShell",
    "kafka-groups": _TOOLS + "GroupsCommand",
    "kafka-leader-election": _TOOLS + "LeaderElectionCommand",
    "kafka-log-dirs": _TOOLS + "LogDirsCommand",
    "kafka-metadata-quorum": _TOOLS + "MetadataQuorumCommand",
    "kafka-producer-perf-test": _TOOLS + "ProducerPerformance",
    "kafka-reassign-partitions": _TOOLS + "reassign.ReassignPartitionsCommand",
    "kafka-share-groups": _TOOLS + "consumer.group.ShareGroupCommand",
    "kafka-streams-groups": _TOOLS + "streams.StreamsGroupCommand",
    "kafka-topics": _TOOLS + "TopicCommand",
    "kafka-transactions": _TOOLS + "TransactionsCommand",
    "kafka-verifiable-consumer": _TOOLS + "VerifiableConsumer",
    "kafka-verifiable-producer": _TOOLS + "VerifiableProducer",
    "client-compatibility-test": _TOOLS + "ClientCompatibilityTest",
    "transactional-message-copier": _TOOLS + "TransactionalMessageCopier",
}
"""By the names of the scripts that start them, where there is one."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a tool did."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Return what it printed, line by line, without blanks at the end or empty lines."""
        return [line.rstrip() for line in self.out.splitlines() if line.strip()]

    @property
    def rows(self) -> list[list[str]]:
        """Return what it printed, cut into words."""
        return [line.split() for line in self.lines]

    @property
    def table(self) -> list[dict[str, str]]:
        """Return the rows of a table whose columns are set off by tabs, by the names in its first line."""
        head, *rows = [[cell.strip() for cell in line.split("\t")[:-1]] for line in self.out.splitlines()]
        return [dict(zip(head, row, strict=True)) for row in rows]


def jars() -> Path:
    """Return the folder with the tools' jars; raises KafkaUnavailableError or JarsUnavailableError."""
    java_banner()
    folder = CACHE / f"kafka-tools-{KAFKA_VERSION}"
    return fetch_jars(f"Kafka's tools {KAFKA_VERSION}", HERE / "pom.xml", folder, {"kafka.version": KAFKA_VERSION})


def command(tool: str, *arguments: str) -> list[str]:
    """Return the command line that runs a tool as a process of its own."""
    return [*JAVA, "-cp", f"{jars()}/*", MAIN_CLASSES[tool], *arguments]


class Toolbox:
    """A virtual machine that runs tools, one at a time."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        """Talk to a running Toolbox.java."""
        self._process = process

    def run(self, tool: str, *arguments: str, stdin: str = "") -> Result:
        """Run a tool and return what it did, whatever that was; -h and --version would end the virtual machine."""
        words = [MAIN_CLASSES[tool], stdin, *arguments]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(base64.b64encode(word.encode()).decode() for word in words) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"{tool} has ended the virtual machine"
        status, out, err = answer.rstrip("\n").split(" ")
        return Result(status=int(status), out=_text(out), err=_text(err))


@contextlib.contextmanager
def toolbox(log: Path) -> Iterator[Toolbox]:
    """Start the virtual machine; `log` gets what it has to say itself."""
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*JAVA, "-cp", f"{jars()}/*", str(HERE / "Toolbox.java")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="ascii",
        )
    try:
        yield Toolbox(process)
    finally:
        # Threads that tools left behind keep it from ending by itself.
        process.kill()
        process.communicate()


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode()
