"""The metrics of the process: its start, its event loop, connections, memory, journal and disk."""

import os
import shutil
from collections import Counter
from pathlib import Path

from exacta.front.memory import Memory
from exacta.front.quotas import Quotas
from exacta.metrics import families
from exacta.metrics.measured import Measured, distribution, labelled, single
from exacta.metrics.sources import ClusterSource, Sources
from exacta.ports.log import Counts


def process(sources: Sources) -> list[Measured]:
    """Return what there is from the first moment on."""
    progress, admission, journal = sources.progress, sources.admission, sources.progress.journal
    fronts = Counter(each.front for each in sources.connections)
    return [
        labelled(families.BUILD, [(sources.version, 1)]),
        single(families.READY, sources.broker is not None),
        single(families.RECOVERY_SECONDS, progress.seconds),
        Measured(families.LOOP_LAG, {(): distribution(sources.loop_lag.seconds)}),
        labelled(families.CONNECTIONS, ((front, fronts[front]) for front in ("kafka", "pulsar", "web"))),
        single(families.CONNECTIONS_TOTAL, admission.admitted),
        single(families.CONNECTIONS_REFUSED, admission.refused),
        Measured(families.SYNC_SECONDS, {} if journal is None else {(): distribution(journal.syncs)}),
        Measured(families.DISK_RESERVE, {} if journal is None else {(): journal.reserve_bytes}),
        Measured(families.DISK_FULL, {} if progress.engine is None else {(): progress.engine.disk_level}),
    ]


def cluster(cluster: ClusterSource | None) -> list[Measured]:
    """Return the metrics of a broker of a cluster."""
    if cluster is None:
        return []
    return [
        single(families.CLUSTER_LEADS, cluster.leads),
        single(families.CLUSTER_LEADS_TAKEN, cluster.leads_taken),
        single(families.CLUSTER_IN_TOUCH, cluster.is_in_touch),
        single(families.CLUSTER_BROKERS, cluster.brokers),
        labelled(families.CLUSTER_LAG, ((str(broker), lag) for broker, lag in cluster.lags.items())),
        single(families.CLUSTER_TAIL, cluster.tail_bytes),
        single(families.CLUSTER_TAIL_AGE, cluster.tail_seconds),
    ]


def memory(memory: Memory) -> list[Measured]:
    """Return the metrics of the budgets and of the turns."""
    budgets = {"requests": memory.requests, "answers": memory.answers}
    return [
        labelled(families.MEMORY_USED, ((name, each.used_bytes) for name, each in budgets.items())),
        labelled(families.MEMORY_LIMIT, ((name, each.most_bytes) for name, each in budgets.items())),
        labelled(families.MEMORY_WAITING, ((name, len(each.line)) for name, each in budgets.items())),
        labelled(families.MEMORY_FILLED, ((name, each.filled) for name, each in budgets.items())),
        single(families.LONG_TURNS, memory.turns.took_long),
    ]


def quotas(quotas: Quotas) -> list[Measured]:
    """Return the metrics of quotas."""
    times = ((each.value, ms / 1000) for each, ms in quotas.throttled_ms.items())
    return [
        labelled(families.QUOTA_THROTTLED, ((each.value, number) for each, number in quotas.throttled.items())),
        labelled(families.QUOTA_THROTTLE_SECONDS, times),
        single(families.QUOTA_BUCKETS, quotas.bucket_count),
    ]


def counted(counts: Counts) -> list[Measured]:
    """Return what the engine has counted of its own work."""
    return [
        labelled(families.REJECTIONS, ((each.name.lower(), number) for each, number in counts.rejections.items())),
        single(families.REBALANCES, counts.rebalances),
        Measured(families.COMMIT_GROUP, {(): distribution(counts.groups)}),
        single(families.TRIMMED, counts.trimmed_records),
        labelled(
            families.COMPACTIONS,
            (
                (outcome, counts.compactions.get(went_well, 0))
                for outcome, went_well in (("done", True), ("failed", False))
            ),
        ),
        single(families.FREED, counts.freed_bytes),
    ]


def disk(data: Path) -> list[Measured]:
    """Return the room on the disk. It may wait for the disk."""
    try:
        usage = shutil.disk_usage(data)
        files = sum(_size(each) for each in os.scandir(data / "journal") if each.is_file())
    except OSError:  # it is about to be made
        return []
    return [
        single(families.JOURNAL_BYTES, files),
        single(families.DISK_FREE, usage.free),
        single(families.DISK_BYTES, usage.total),
    ]


def _size(file: "os.DirEntry[str]") -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # it has just been deleted
        return 0
