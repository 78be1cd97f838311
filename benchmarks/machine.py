"""The machine of the figures: processor, memory, kernel, file system, and what a sync of its disk costs.

The disk is probed again before every broker's turn, for a virtual machine's disk is rarely the same twice.
"""

import os
import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
import psutil

from benchmarks.figures import percentile

PROBE_BYTES = 4096
PROBE_SYNCS = 200


@dataclass(frozen=True, kw_only=True)
class SyncLatency:
    """Latency of appending 4 KB to a file and syncing it, in milliseconds."""

    p50_ms: float
    p99_ms: float


def sync_latency(folder: Path, syncs: int = PROBE_SYNCS) -> SyncLatency:
    """Measure appends with fdatasync on the disk that holds the folder."""
    block = os.urandom(PROBE_BYTES)
    latencies_ms = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(syncs):
            started_s = time.perf_counter()
            file.write(block)
            os.fdatasync(file.fileno())
            latencies_ms.append((time.perf_counter() - started_s) * 1000)
    latencies_ms.sort()
    return SyncLatency(p50_ms=percentile(latencies_ms, 50), p99_ms=percentile(latencies_ms, 99))


def file_system(folder: Path) -> str:
    """Name the type of the file system that holds the folder, "unknown" where the system does not say."""
    path = folder.resolve()
    mounts = [each for each in psutil.disk_partitions(all=True) if path.is_relative_to(each.mountpoint)]
    return max(mounts, key=lambda each: len(each.mountpoint)).fstype if mounts else "unknown"


def processor() -> str:
    """Name the processor's model as far as the system tells."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def facts(folder: Path, client: str | None = None) -> list[str]:
    """Describe the machine and the client in lines for the report; nothing in them names the machine itself."""
    librdkafka = f"confluent-kafka {confluent_kafka.version()}, librdkafka {confluent_kafka.libversion()[0]}"
    memory_gb = psutil.virtual_memory().total / 1e9
    return [
        f"{os.cpu_count()} CPUs ({processor()}), {memory_gb:.0f} GB of memory, client and broker on the same",
        f"{platform.system()} {platform.release()}, data on {file_system(folder)}",
        f"client: {client or librdkafka}",
    ]
