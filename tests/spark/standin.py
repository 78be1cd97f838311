"""A stand-in for Spark: it calls the sink's protocol as Spark does, and crashes, repeats and doubles as Spark might.

The same prepare, task, commit and abort as under Spark, against a real broker, but thousands of times quicker, so
every crash point is met many times. What differs: tasks are threads, and a crash is an exception after which nothing
of that life is called any more. Tasks that a crash leaves behind live on as zombies: they wait in the middle of their
input and go on during a later life.

The choices are made by one random generator, so a seed repeats a campaign (up to the timing of zombies).
"""

import json
import random
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa

from exacta.client.errors import ErrorClass, KafkaError
from exacta.client.routing import Client
from exacta.client.transactions import TopicPartition
from exacta.spark.options import SinkOptions
from exacta.spark.sink import end_together
from exacta.spark.sink.checkpoint import Checkpoint
from exacta.spark.sink.cluster import QueryOnCluster
from exacta.spark.sink.errors import SinkError
from exacta.spark.sink.note import SinkNotes
from exacta.spark.sink.protocol import SinkDriver
from exacta.spark.sink.task import write_task

BETWEEN_THE_ENDS = "between the ends"
"""A point that exists where the transactions of a decided batch are ended one by one. If they are ended with the
decision, there is no such moment."""

CRASH_POINTS = (
    "before preparing",
    "begun without a note",
    "after preparing",
    "tasks writing",
    "after all tasks",
    "noted and not decided",
    "decision not ended",
    "after the decision",
    BETWEEN_THE_ENDS,
    "before a sweep",
    "after commit",
)


class Crash(BaseException):
    """The driver's process is killed here. No `Exception`: nobody may handle it."""


class CrashingNotes(SinkNotes):
    """A sink's note, whose driver is killed where `reached` raises."""

    reached: Callable[..., None]

    def deciding(self, batch_id, wrote=None):
        super().deciding(batch_id, wrote)
        self.reached("noted and not decided")


class CrashingCluster(QueryOnCluster):
    """The cluster of a driver that is killed where `reached` raises."""

    reached: Callable[..., None]

    def begin(self, driver, nothing):
        super().begin(driver, nothing)
        self.reached("begun without a note")

    def decide(self, driver, decision, shared=frozenset()):
        self.reached("decision not ended", lambda: self.put_decision(driver, decision))
        super().decide(driver, decision, shared)
        self.reached("after the decision")

    def decide_and_end(self, driver, decision, written, acknowledged=()):
        if vars(end_together)["can_end_at_once"](self.client, driver):
            self.reached("decision not ended", lambda: self.put_decision(driver, decision))
        if not super().decide_and_end(driver, decision, written, acknowledged):
            return False
        self.reached("after the decision")
        return True

    def end_all(self, entries):
        if entries:
            self.reached(BETWEEN_THE_ENDS, lambda: super(CrashingCluster, self).end_all(entries[: len(entries) // 2]))
        return super().end_all(entries)

    def sweep(self, driver, **arguments):
        self.reached("before a sweep")
        return super().sweep(driver, **arguments)


class CrashingDriver(SinkDriver):
    """A driver that is killed where `reached` raises."""

    def __init__(self, reached, *arguments, **named):
        super().__init__(*arguments, **named)
        plain = self.cluster
        self.cluster = CrashingCluster(
            plain.client, plain.names, plain.marker, transaction_timeout_ms=plain.transaction_timeout_ms
        )
        self.cluster.reached = self._reached = reached

    def commit(self, results, batch_id, **arguments):
        self._reached("after all tasks")
        super().commit(results, batch_id, **arguments)
        self._reached("after commit")


# A dataclass, since `__post_init__` sets further attributes.
@dataclass
class Campaign:
    """One query, killed again and again until its input is written."""

    bootstrap: str
    topic: str
    seed: int
    tasks: int = 3
    batches: int = 12
    rows_per_batch: int = 60
    crash_chance: float = 0.5
    failure_chance: float = 0.15
    speculation_chance: float = 0.2
    zombie_chance: float = 0.5
    scope: str = "task"  # of a transaction
    shuffled: bool = True  # a replay puts rows into other tasks than before
    points: tuple[str, ...] = CRASH_POINTS  # where it may be killed
    at_each_point: Callable[[], None] = lambda: None
    query_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    crashes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._options = SinkOptions(
            bootstrap=self.bootstrap,
            topic=self.topic,
            transaction_timeout_ms=60_000,
            transaction_scope=self.scope,
        )
        self._zombies: list[_Zombie] = []
        self._crash_at: str | None = None
        self._client = Client(self.bootstrap)
        self._checkpoint = Path(tempfile.mkdtemp(prefix="stand-in-"))
        (self._checkpoint / "offsets").mkdir()
        (self._checkpoint / "metadata").write_text(json.dumps({"id": self.query_id}))

    @property
    def expected(self) -> list[int]:
        """The rows that must be there, once each."""
        return list(range(self.batches * self.rows_per_batch))

    def run(self) -> None:
        """Live and crash until all batches are committed."""
        next_batch = 0
        try:
            while next_batch < self.batches:
                try:
                    self._batch(next_batch)
                except Crash:
                    self._client.close()
                    self._client = Client(self.bootstrap)
                else:
                    next_batch += 1
                self._wake_some_zombies()
            # As a query that goes on would: what zombies opened since is swept by the next batch.
            for zombie in self._zombies:
                zombie.finish()
            self._crash_at = None
            self._driver().prepare()
        finally:
            for zombie in self._zombies:
                zombie.finish()
            self._client.close()
            shutil.rmtree(self._checkpoint)

    def _batch(self, batch_id: int) -> None:
        self._crash_at = self._random.choice(self.points) if self._random.random() < self.crash_chance else None
        (self._checkpoint / "offsets" / str(batch_id)).touch()
        self._reached("before preparing")
        prepared = self._driver().prepare()
        self._reached("after preparing")
        results = []
        for task, rows in enumerate(self._slices(batch_id)):
            if task == self.tasks // 2:
                self._reached("tasks writing", partial(self._leave_zombie, prepared, rows, batch_id, task, attempt=0))
            try:
                results.append(self._task(prepared, rows, batch_id, task))
            except SinkError:  # no task is repeated in a transaction that all share
                assert self.scope == "batch"
                self._driver().abort([*results, None])
                raise Crash from None
        driver = self._driver()
        try:
            driver.commit(results, batch_id, tasks=self.tasks, reads=f"batch {batch_id}")
        except Exception:  # noqa: BLE001 - as Spark: whatever it is, abort, and the query ends
            driver.abort(results)
            raise Crash from None

    def _reached(self, point: str, last_deed: Callable[[], object] = lambda: None) -> None:
        """Die here if this life is to end at `point`, after a last deed."""
        self.at_each_point()
        if point == self._crash_at:
            self.crashes[point] = self.crashes.get(point, 0) + 1
            last_deed()
            raise Crash

    def _task(self, prepared, rows, batch_id, task):
        """Run the attempts of a task; return the result of the one that counts."""
        attempt = 0
        while self._random.random() < self.failure_chance:
            self._leave_zombie(prepared, rows, batch_id, task, attempt)
            attempt += 1
        if self._random.random() < self.speculation_chance:
            loser = attempt + self._random.choice([0, 1])
            attempt = attempt + 1 if loser == attempt else attempt
            # A loser has written everything and is never heard of.
            with suppress(KafkaError):
                self._attempt(prepared, iter(_arrow(self._options, rows, task)), batch_id, task, loser)
        return self._retried(prepared, rows, batch_id, task, attempt)

    def _attempt(self, prepared, batches, batch_id, task, attempt):
        return write_task(self._client, self._options, prepared, batches, batch_id=batch_id, task=task, attempt=attempt)

    def _retried(self, prepared, rows, batch_id, task, attempt):
        """Run an attempt, and the next ones where it fails by itself, as Spark does up to four times."""
        for last in (False, False, False, True):
            try:
                return self._attempt(prepared, iter(_arrow(self._options, rows, task)), batch_id, task, attempt)
            except KafkaError as error:
                # A broker that was killed has forgotten a transaction of which nothing was durable yet.
                if error.error_class is not ErrorClass.ABORTABLE or last:
                    raise
            attempt += 1
        raise AssertionError

    def _leave_zombie(self, prepared, rows, batch_id, task, attempt) -> None:
        """Begin an attempt that stops in the middle of its input, to go on later or never."""
        zombie = _Zombie(self._options, prepared, rows, batch_id, task, attempt)
        zombie.start()
        zombie.wait_until_stuck()
        self._zombies.append(zombie)

    def _wake_some_zombies(self) -> None:
        for zombie in list(self._zombies):
            if self._random.random() < self.zombie_chance:
                self._zombies.remove(zombie)
                zombie.finish()

    def _driver(self) -> CrashingDriver:
        notes = CrashingNotes.of(Checkpoint(str(self._checkpoint)), self._options)
        notes.reached = self._reached
        return CrashingDriver(
            self._reached,
            self._client,
            self.query_id,
            query_id=self.query_id,
            location=notes.identity.location,
            marker=TopicPartition(self.topic, 0),
            transaction_timeout_ms=60_000,
            notes=notes,
        )

    def _slices(self, batch_id: int) -> list[list[int]]:
        first = batch_id * self.rows_per_batch
        slices: list[list[int]] = [[] for _ in range(self.tasks)]
        for row in range(first, first + self.rows_per_batch):
            task = self._random.randrange(self.tasks) if self.shuffled else row % self.tasks
            slices[task].append(row)
        return slices


class _Zombie(threading.Thread):
    """An attempt that stands still in the middle of its input until `finish`."""

    def __init__(self, options, prepared, rows, batch_id, task, attempt) -> None:
        super().__init__(daemon=True)
        self._arguments = (options, prepared, rows, batch_id, task, attempt)
        self._stuck = threading.Event()
        self._go_on = threading.Event()

    def run(self) -> None:
        options, prepared, _, batch_id, task, attempt = self._arguments
        with Client(options.bootstrap, call_timeout_ms=10_000) as client:
            try:
                write_task(client, options, prepared, self._input(), batch_id=batch_id, task=task, attempt=attempt)
            except Exception:  # noqa: BLE001 - whatever stops a zombie is welcome
                pass
            finally:
                self._stuck.set()

    def _input(self) -> Iterator[pa.RecordBatch]:
        options, _, rows, _, task, _ = self._arguments
        batches = _arrow(options, rows, task)
        yield from batches[:1]
        self._stuck.set()
        self._go_on.wait()
        yield from batches[1:]

    def wait_until_stuck(self) -> None:
        assert self._stuck.wait(30)

    def finish(self) -> None:
        self._go_on.set()
        self.join(30)
        assert not self.is_alive()


def _arrow(options: SinkOptions, rows: list[int], task: int) -> list[pa.RecordBatch]:
    # In a transaction that all share, each task has a partition to itself.
    partition = task if options.transaction_scope == "batch" else None
    values = [str(row).encode() for row in rows]
    middle = (len(values) + 1) // 2
    return [
        pa.RecordBatch.from_pydict(
            {
                "key": pa.array(half),
                "value": pa.array(half),
                "partition": pa.array([partition] * len(half), pa.int32()),
            }
        )
        for half in (values[:middle], values[middle:])
        if half
    ]
