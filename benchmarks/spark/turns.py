"""Let both sides take turns: a Kafka of its own for each turn, filled, and one Spark process that is measured.

Owns the order of things and what is checked. A turn counts only if a reader finds in the output topic as many rows as
were to be written, warm-up included. As in the broker's benchmark, turns alternate (A B A B), so that what is compared
lies seconds apart; a Kafka that had served one side would be warmer for the other (decision 0005).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from benchmarks import clients
from benchmarks.brokers import Broker, KafkaLauncher
from benchmarks.figures import COST, CaseFailure, Figure, Results
from benchmarks.machine import sync_latency
from benchmarks.spark.job import BY_DRIVER, BY_NOBODY, BY_TASKS, COLLECTED, SMALL_TITLES, WARM_UPS, Turn
from benchmarks.spark.topics import filled_topic, new_topic

PROJECT = Path(__file__).resolve().parents[2]
SIDES = {"Exacta": "exacta", "Spark's own": "kafka"}
"""Name in the report -> format."""
SIZES = {"100 B": 100, "1 KB": 1_000}
BULK_PARTITIONS, SMALL_PARTITIONS = 4, 2
SMALL_ROWS, SMALL_ROW_BYTES = 20, 100
JOB_TIMEOUT_S = 600.0
LOG_TAIL = 3_000
Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The amounts to move: rows of a bulk turn, of a batch, and small batches that count; a part of each as warm-up."""

    rows: int = 1_000_000
    rows_per_batch: int = 200_000
    small_batches: int = 120

    @property
    def warm_up_rows(self) -> int:
        """Rows before those that count, to be read several times: as many again."""
        return self.rows

    @property
    def warm_up_small_batches(self) -> int:
        """Small batches before those that count."""
        return self.small_batches * 2


@dataclass(frozen=True, kw_only=True)
class Case:
    """One process's work: bulk rows of a size, or small batches."""

    name: str
    size: str = ""
    writer: str = BY_TASKS

    @property
    def title(self) -> str:
        """The name of a case of small batches in the report."""
        return SMALL_TITLES[self.writer]


CASES = {
    case.name: case
    for case in (
        Case(name="bulk-100B", size="100 B"),
        Case(name="bulk-1KB", size="1 KB"),
        Case(name="small-tasks"),
        Case(name="small-driver", writer=BY_DRIVER),
        Case(name="small-collect", writer=COLLECTED),
        Case(name="small-read", writer=BY_NOBODY),
    )
}


class JobFailedError(Exception):
    """A Spark process ended badly; the text holds the end of its log."""


class Turns:
    """The turns of a run."""

    def __init__(
        self, launcher: KafkaLauncher, jars: Sequence[Path], scale: Scale, work: Path, progress: Progress
    ) -> None:
        self._launcher = launcher
        self._jars = [str(jar) for jar in jars]
        self._scale = scale
        self._work = work
        self._progress = progress
        self.results = Results(brokers=list(SIDES))

    def run(self, cases: Sequence[Case], rounds: int) -> Results:
        """Run the cases this many times; whatever fails is noted."""
        # Spark's own connector has one way to write a small batch, and both of ours are held against it; so is what
        # one of them does before it writes.
        written = [case for case in cases if not case.size and case.writer != BY_NOBODY]
        for round_number in range(1, rounds + 1):
            for case in cases:
                self._take(case, "Exacta", round_number, stands_for=[case])
                if case not in written:
                    self._take(case, "Spark's own", round_number, stands_for=[case])
                elif case is written[0]:
                    self._take(case, "Spark's own", round_number, stands_for=written)
        return self.results

    def _take(self, case: Case, side: str, round_number: int, stands_for: Sequence[Case]) -> None:
        os.sync()
        self.results.sync_latencies_ms.append(sync_latency(self._work).p50_ms)
        try:
            figures = self._figures(case, side)
        except Exception as error:  # noqa: BLE001  (one failed turn must not hide the others)
            reason = f"{type(error).__name__}: {error}".replace(f"{PROJECT}/", "")
            self.results.failures.append(
                CaseFailure(broker=side, case=case.name, round_number=round_number, reason=reason)
            )
            traceback.print_exception(error)
            return
        for figure in figures:
            if figure.kind != COST:
                self._progress(f"round {round_number}: {side}: {figure.case}: {figure.value:,.6g} {figure.name}")
            for each in stands_for:
                self.results.add(side, figure if each.size else replace(figure, case=each.title))

    def _figures(self, case: Case, side: str) -> list[Figure]:
        with (
            tempfile.TemporaryDirectory(prefix="spark-", dir=self._work) as folder,
            self._launcher.launch() as broker,
        ):
            broker.wait_until_ready()
            turn = self._prepare(case, side, broker, Path(folder))
            self._spark(turn, Path(folder))
            scale = self._scale
            rows = scale.rows + WARM_UPS * scale.warm_up_rows
            if not case.size:
                rows = (scale.small_batches + scale.warm_up_small_batches) * SMALL_ROWS
            if case.writer in (COLLECTED, BY_NOBODY):
                rows = 0
            partitions = BULK_PARTITIONS if case.size else SMALL_PARTITIONS
            found = clients.count_committed(broker.bootstrap, turn.output, partitions, expected=rows)
            if found != rows:
                raise clients.ReadingFailedError(f"{rows} rows were to be written, a reader finds {found}")
            return msgspec.json.decode(Path(turn.answer).read_bytes(), type=list[Figure])

    def _prepare(self, case: Case, side: str, broker: Broker, folder: Path) -> Turn:
        scale, bootstrap = self._scale, broker.bootstrap
        if case.size:
            partitions, row_bytes, rows_per_batch = BULK_PARTITIONS, SIZES[case.size], scale.rows_per_batch
            rows, warm_up_rows = scale.rows, scale.warm_up_rows
        else:
            partitions, row_bytes, rows_per_batch = SMALL_PARTITIONS, SMALL_ROW_BYTES, SMALL_ROWS
            rows, warm_up_rows = scale.small_batches * SMALL_ROWS, scale.warm_up_small_batches * SMALL_ROWS
        return Turn(
            side=SIDES[side],
            writer=case.writer,
            bootstrap=bootstrap,
            broker_pid=broker.process.pid if broker.process is not None else None,
            jars=self._jars if side != "Exacta" else [],
            folder=str(folder),
            warm_up=filled_topic(bootstrap, "warm-up", partitions, rows=warm_up_rows, row_bytes=row_bytes),
            input=filled_topic(bootstrap, "input", partitions, rows=rows, row_bytes=row_bytes),
            output=new_topic(bootstrap, "output", partitions),
            rows_per_batch=rows_per_batch,
            rows=rows,
            suffix=case.size,
            answer=str(folder / "figures.json"),
        )

    def _spark(self, turn: Turn, folder: Path) -> None:
        """Run the job; raises JobFailedError."""
        log = folder / "log"
        command = [sys.executable, "-m", "benchmarks.spark.job", msgspec.json.encode(turn).decode()]
        with log.open("wb") as output:
            done = subprocess.run(
                command, cwd=PROJECT, stdout=output, stderr=output, timeout=JOB_TIMEOUT_S, check=False
            )
        if done.returncode != 0:
            raise JobFailedError(f"Spark ended with status {done.returncode}: {log.read_text()[-LOG_TAIL:]}")
