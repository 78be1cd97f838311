"""The means that a case works with: topics, loads in client processes, and the figures of a measured part.

A session is one broker's turn at one case. It knows where the broker is and how long to measure; it does not know
what a case does.
"""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from benchmarks import clients
from benchmarks.brokers import Broker
from benchmarks.figures import COST, Figure, latency_figures
from benchmarks.processes import Usage, machine_cpu_s
from benchmarks.workers import Load, Outcome, WorkerGroup

PHASE_TIMEOUT_S = 120.0
BULK_WARM_UP_LIMIT_S = 3.0
CLIENT_IS_THE_LIMIT = 0.9
"""The client's busiest thread is taken to limit the rate if it uses this share of a core or more."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The times for which to measure, and to load the broker before that.

    Bulk cases move as many messages as took about so long where this was written.
    """

    seconds: float = 5.0
    warm_up_s: float = 1.0

    @property
    def bulk_warm_up_s(self) -> float:
        """The time for which bulk data warms up: every second of it is a hundred megabytes on the disk."""
        return min(self.warm_up_s, BULK_WARM_UP_LIMIT_S)


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A measured part: what the client processes did, and what broker and machine used meanwhile."""

    outcomes: list[Outcome]
    broker_before: Usage | None
    broker_after: Usage | None
    machine_cpu_s: float
    elapsed_s: float


class Session:
    """One broker's turn at one case."""

    def __init__(self, broker: Broker, scale: Scale) -> None:
        """Serve a case with this broker."""
        self.bootstrap = broker.bootstrap
        self.scale = scale
        self._broker = broker
        # Topics of their own for every turn, also on a broker that keeps its data.
        self._unique = uuid4().hex[:8]
        self._numbers = itertools.count(1)
        self._topics: list[str] = []

    def name(self, label: str) -> str:
        """Return a name that no other turn uses, for a group or a transactional id."""
        return f"bench-{label}-{self._unique}-{next(self._numbers)}"

    def topic(self, label: str, partitions: int = 1) -> str:
        """Create a topic for this turn."""
        topic = self.name(label)
        clients.create_topic(self.bootstrap, topic, partitions)
        self._topics.append(topic)
        return topic

    def delete_topics(self) -> None:
        """Delete what topic() made: the broker lives on."""
        if self._topics:
            clients.delete_topics(self.bootstrap, self._topics)

    def expect_committed(self, topic: str, partitions: int, records: int) -> None:
        """Check that a reader finds exactly what was acknowledged; raises ReadingFailedError.

        A rate of answers counts for nothing if what was answered is not there.
        """
        found = clients.count_committed(self.bootstrap, topic, partitions, expected=records)
        if found != records:
            raise clients.ReadingFailedError(f"{records} committed records were acknowledged, a reader finds {found}")

    def usage(self) -> Usage | None:
        """Read what the broker has used so far, or None if its process is not known."""
        return self._broker.usage()

    def run(self, load: Load, workers: Sequence[dict[str, Any]]) -> list[Outcome]:
        """Run a load in one process for each set of options, for what it leaves behind, not for figures."""
        return self._run(load, workers).outcomes

    def measure(
        self, case: str, unit: str, load: Load, workers: Sequence[dict[str, Any]]
    ) -> tuple[list[Figure], list[Outcome]]:
        """Run a load in one process for each set of options; return what its measured part yields, and the outcomes."""
        phase = self._run(load, workers)
        return phase_figures(case, unit, phase), phase.outcomes

    def _run(self, load: Load, workers: Sequence[dict[str, Any]]) -> Phase:
        options = [{"bootstrap": self.bootstrap, "scale": self.scale, **each} for each in workers]
        timeout_s = PHASE_TIMEOUT_S + self.scale.seconds + self.scale.warm_up_s
        with WorkerGroup(load, options) as group:
            group.wait_until_ready(timeout_s)
            before, machine_before_s, started_s = self._broker.usage(), machine_cpu_s(), time.monotonic()
            group.go()
            group.wait_until_measured(timeout_s)
            after, machine_after_s, ended_s = self._broker.usage(), machine_cpu_s(), time.monotonic()
            return Phase(
                outcomes=group.outcomes(timeout_s),
                broker_before=before,
                broker_after=after,
                machine_cpu_s=machine_after_s - machine_before_s,
                elapsed_s=ended_s - started_s,
            )


def phase_figures(case: str, unit: str, phase: Phase) -> list[Figure]:
    """Turn one measured part into figures."""
    outcomes, before, after = phase.outcomes, phase.broker_before, phase.broker_after
    tallies = [outcome.tally for outcome in outcomes]
    operations = sum(tally.operations for tally in tallies)
    payload_bytes = sum(tally.payload_bytes for tally in tallies)
    seconds = max(tally.seconds for tally in tallies)
    figures = [Figure(case=case, name=unit, value=operations / seconds)]
    if payload_bytes:
        figures.append(Figure(case=case, name="MB/s", value=payload_bytes / seconds / 1e6))
    figures += latency_figures(case, [each for tally in tallies for each in tally.latencies_ms])

    def cost(name: str, value: float) -> None:
        figures.append(Figure(case=case, name=name, value=value, kind=COST))

    if before is not None and after is not None:
        cost("broker CPU s", after.cpu_s - before.cpu_s)
        if operations:
            cost("broker CPU µs per operation", (after.cpu_s - before.cpu_s) / operations * 1e6)
    client_cpu_s = sum(outcome.cpu_s for outcome in outcomes)
    cost("client CPU s", client_cpu_s)
    cost("busiest client thread, cores", max(outcome.busiest_thread for outcome in outcomes))
    if before is not None and after is not None:
        others_cpu_s = phase.machine_cpu_s - client_cpu_s - (after.cpu_s - before.cpu_s)
        cost("others, cores", max(0.0, others_cpu_s) / phase.elapsed_s)
        cost("RSS before MB", before.resident_bytes / 1e6)
        cost("RSS after MB", after.resident_bytes / 1e6)
    return figures
