"""Configure and command one standalone Apache Pulsar: broker, bookie and metadata store in one process.

The distribution's own options of the virtual machine and its own heap, and its standalone configuration, but for these:
transactions are on, and the bookie's journal is synced (`journalSyncData`), because Exacta syncs as well and a commit
that a power cut takes back is no commit. The functions worker and stream storage are off: no case needs them.
"""

import urllib.request
from dataclasses import dataclass
from pathlib import Path

from benchmarks.pulsar.distribution import LOG_CONFIGURATION

HOST = "127.0.0.1"
HEAP = ("-Xms2g", "-Xmx2g", "-XX:MaxDirectMemorySize=4g")
GARBAGE_COLLECTION = (
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=10",
    "-XX:+ParallelRefProcEnabled",
    "-XX:+DisableExplicitGC",
)
PROPERTIES = {
    "io.netty.recycler.maxCapacityPerThread": "4096",
    "io.netty.tryReflectionSetAccessible": "true",
    "java.net.preferIPv4Stack": "true",
    "log4j.shutdownHookEnabled": "false",
    "log4j2.is.webapp": "false",
    "pulsar.allocator.exit_on_oom": "true",
    "bookkeeper.metadata.bookie.drivers": "org.apache.pulsar.metadata.bookkeeper.PulsarMetadataBookieDriver",
    "bookkeeper.metadata.client.drivers": "org.apache.pulsar.metadata.bookkeeper.PulsarMetadataClientDriver",
}
OPENED = (
    *(f"java.base/{package}" for package in ("java.io", "java.lang", "java.lang.reflect", "java.nio", "java.util.zip")),
    *("java.base/jdk.internal.misc", "java.base/sun.net", "java.management/sun.management"),
)
"""Packages of Java that the server reaches into."""


@dataclass(frozen=True, kw_only=True)
class Standalone:
    """Name what a server needs: the jars, a folder of its own, and three ports."""

    jars: Path
    folder: Path
    port: int
    web_port: int
    bookie_port: int

    def configuration(self) -> str:
        """Return the text of standalone.conf."""
        lines = [
            "clusterName=standalone",
            f"bindAddress={HOST}",
            f"advertisedAddress={HOST}",
            f"brokerServicePort={self.port}",
            f"webServicePort={self.web_port}",
            "transactionCoordinatorEnabled=true",
            "journalSyncData=true",
            # From here on as the distribution has it in its standalone.conf, beside the defaults of the code.
            "managedLedgerDefaultEnsembleSize=1",
            "managedLedgerDefaultWriteQuorum=1",
            "managedLedgerDefaultAckQuorum=1",
            "loadManagerClassName=org.apache.pulsar.broker.loadbalance.NoopLoadManager",
            "loadBalancerEnabled=false",
            "systemTopicEnabled=true",
            "topicLevelPoliciesEnabled=true",
            "webSocketServiceEnabled=false",
            "brokerDeleteInactiveTopicsEnabled=false",
            "ledgerStorageClass=org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
            "flushInterval=60000",
            "journalMaxGroupWaitMSec=1",
            "diskUsageThreshold=0.99",
            "diskUsageWarnThreshold=0.99",
            "allowLoopback=true",
            "bookkeeperUseV2WireProtocol=true",
            "bookkeeperNumberOfChannelsPerBookie=16",
        ]
        return "\n".join(lines) + "\n"

    def prepare(self) -> None:
        """Write the configuration, and make the folders."""
        for name in ("metadata", "bookkeeper"):
            (self.folder / name).mkdir(parents=True)
        self._configuration.write_text(self.configuration())

    def command(self) -> list[str]:
        """Return the command line that runs the prepared server until a signal ends it."""
        opened = [argument for each in OPENED for argument in ("--add-opens", f"{each}=ALL-UNNAMED")]
        properties = [f"-D{name}={value}" for name, value in PROPERTIES.items()]
        java = ["java", *HEAP, *GARBAGE_COLLECTION, *opened, *properties]
        java += [f"-Dlog4j2.configurationFile={LOG_CONFIGURATION}", "-cp", f"{self.jars}/*"]
        arguments = ["--config", str(self._configuration), "--advertised-address", HOST]
        arguments += ["--metadata-dir", str(self.folder / "metadata")]
        arguments += ["--bookkeeper-dir", str(self.folder / "bookkeeper"), "--bookkeeper-port", str(self.bookie_port)]
        arguments += ["--no-functions-worker", "--no-stream-storage"]
        return [*java, "org.apache.pulsar.PulsarStandaloneStarter", *arguments]

    def is_ready(self) -> bool:
        """Return whether the server has made the namespace that clients use; that comes last."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.web_port}/admin/v2/namespaces/public", timeout=2) as page:
                return b"public/default" in page.read()
        except OSError:
            return False

    @property
    def _configuration(self) -> Path:
        return self.folder / "standalone.conf"
