"""Exacta's data source with faults: at the points of the sink's protocol a process stands still, dies or fails.

A fault is *armed* by a file in the directory of option `fault.directory` and strikes once, in the first process that
comes to its point. Who stands still waits there, until it is killed or released: so the holder of the other end
may kill what it likes at exactly that point, or let the world go on behind that process's back. The classes travel to
Spark's workers by value (`travel_by_value`), so nothing of the tests need be importable there.
"""

import glob
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from exacta.spark.datasource import ExactaDataSource
from exacta.spark.sink.batch_sink import ExactaBatchWriter
from exacta.spark.sink.sink import ExactaStreamWriter

# The points, in the order in which a batch meets them: two in a task, four where the batch is committed.
TASKS_WRITING = "tasks writing"
MARKER_WRITTEN = "marker written"
ALL_TASKS_DONE = "after all tasks"
DECIDED = "after the decision"
BEFORE_THE_ENDS = "before the ends"
BETWEEN_THE_ENDS = "between the ends"
COMMITTED = "after commit"
A_REQUEST = "at a request"
"""A request of whatever process has just been sent; `skip` says how many others went before it. A request's own name is
a point, too."""

ONE_BY_ONE = (BEFORE_THE_ENDS, BETWEEN_THE_ENDS)
"""A broker that ends all transactions of a batch at once has no such moment, so the sink then ends them one by one."""

# What befalls the process that comes to the point.
HALT, DIE, RAISE = "halt", "die", "raise"
LOSE = "lose"
"""The process deletes the files of the pattern `lost`, and goes on."""

RELEASED_WITHIN_S = 240.0
LOOK_EVERY_S = 0.001


class Strike(NamedTuple):
    """The point at which a fault has struck, and the process."""

    point: str
    pid: int


def travel_by_value() -> None:
    """Make Spark send the classes of this module whole."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


# --- the one who arms -------------------------------------------------------------------------------------------------


def arm(directory: Path, point: str, action: str = HALT, *, skip: int = 0, lost: str = "") -> None:
    """Let a fault strike once, at `point`, or where it is come to after `skip` times."""
    (directory / "passed").unlink(missing_ok=True)
    whole = directory / "arming"
    whole.write_text(json.dumps({"point": point, "action": action, "skip": skip, "lost": lost}))
    whole.rename(directory / "armed")


def disarm(directory: Path) -> bool:
    """Take back what is armed; return whether it has not struck."""
    with suppress(FileNotFoundError):
        (directory / "armed").unlink()
        return True
    return False


def struck(directory: Path) -> list[Strike]:
    """Return what has struck, in order."""
    noted = directory / "struck"
    lines = noted.read_text().splitlines() if noted.exists() else []
    return [Strike(**json.loads(line)) for line in lines]


def release(directory: Path, strike: Strike) -> None:
    """Let a process go on that stands still."""
    (directory / f"released-{strike.pid}").touch()


# --- the one who is struck --------------------------------------------------------------------------------------------


def armed_point(directory: str) -> str | None:
    """Return the point that a fault is armed for."""
    with suppress(FileNotFoundError):
        return str(json.loads((Path(directory) / "armed").read_text())["point"])
    return None


def reach(directory: str, point: str) -> None:
    """Come to a point: where a fault is armed for it, it strikes here."""
    at = Path(directory)
    try:
        armed = json.loads((at / "armed").read_text())
        if armed["point"] != point or not _is_due(at, armed["skip"]):
            return
        os.rename(at / "armed", at / f"claimed-{os.getpid()}")
    except FileNotFoundError:
        return  # not armed, or another process was quicker
    released = at / f"released-{os.getpid()}"
    released.unlink(missing_ok=True)
    with (at / "struck").open("a") as file:
        file.write(json.dumps({"point": point, "pid": os.getpid()}) + "\n")
    if armed["action"] == RAISE:
        raise RuntimeError(f"this fails {point} because a test wants it to")
    if armed["action"] == DIE:
        os.kill(os.getpid(), signal.SIGKILL)
    if armed["action"] == LOSE:
        for path in glob.glob(armed["lost"], recursive=True):
            os.unlink(path)
        return
    deadline = time.monotonic() + RELEASED_WITHIN_S
    while not released.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody released this process, which stands still {point}")
        time.sleep(LOOK_EVERY_S)


def _is_due(directory: Path, skip: int) -> bool:
    """Count one more who came; say whether enough have. All processes share the count: the length of a file."""
    if skip == 0:
        return True
    counter = os.open(directory / "passed", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(counter, b".")
        return os.fstat(counter).st_size > skip
    finally:
        os.close(counter)


def halved(batches: Iterator, directory: str) -> Iterator:
    """Yield Arrow batches in halves, coming to `TASKS_WRITING` between the two."""
    for batch in batches:
        yield batch.slice(0, batch.num_rows // 2)
        reach(directory, TASKS_WRITING)
        yield batch.slice(batch.num_rows // 2)


def watch_requests(directory: str) -> None:
    """Come to `A_REQUEST` whenever this process, whose workers read and write for many tasks, has sent one."""
    from exacta.client.connection import Connection

    if getattr(Connection, "watched_by_faults", False):
        return
    plain = Connection.send

    def send(self, request, *arguments, **named):
        plain(self, request, *arguments, **named)
        reach(directory, A_REQUEST)
        reach(directory, type(request).__name__)

    Connection.send, Connection.watched_by_faults = send, True  # type: ignore[attr-defined,method-assign]


class FaultyWriter(ExactaStreamWriter):
    """Exacta's writer, which comes to the points."""

    def __init__(self, options, directory):
        super().__init__(options)
        self.directory = directory

    def __getstate__(self):
        watch_requests(self.directory)
        return super().__getstate__()

    def write(self, iterator):
        watch_requests(self.directory)
        message = super().write(halved(iterator, self.directory))
        if _wrote(message):
            reach(self.directory, MARKER_WRITTEN)
        return message

    def driver(self):
        driver = super().driver()
        cluster = driver.cluster
        decide, decide_and_end, end_all = cluster.decide, cluster.decide_and_end, cluster.end_all

        def faulty_decide(*arguments, **named):
            decide(*arguments, **named)
            reach(self.directory, DECIDED)
            reach(self.directory, BEFORE_THE_ENDS)

        def faulty_decide_and_end(*arguments):
            if armed_point(self.directory) in ONE_BY_ONE:
                return False
            at_once = decide_and_end(*arguments)
            if at_once:
                reach(self.directory, DECIDED)
            return at_once

        def faulty_end_all(entries):
            entries = list(entries)
            if len(entries) > 1 and armed_point(self.directory) == BETWEEN_THE_ENDS:
                end_all(entries[:1])
                reach(self.directory, BETWEEN_THE_ENDS)
            return end_all(entries)

        cluster.decide = faulty_decide  # type: ignore[method-assign]
        cluster.decide_and_end = faulty_decide_and_end  # type: ignore[method-assign]
        cluster.end_all = faulty_end_all  # type: ignore[method-assign]
        return driver

    def commit(self, messages, batchId):
        watch_requests(self.directory)
        wrote = any(map(_wrote, messages))
        if wrote:
            reach(self.directory, ALL_TASKS_DONE)
        super().commit(messages, batchId)
        if wrote:
            reach(self.directory, COMMITTED)


class FaultyBatchWriter(ExactaBatchWriter):
    """Exacta's writer of a job, whose tasks and whose commit come to `A_REQUEST`."""

    def __init__(self, plain, directory):
        self.__dict__.update(plain.__dict__)
        self.directory = directory

    def write(self, iterator):
        watch_requests(self.directory)
        return super().write(iterator)

    def commit(self, messages):
        watch_requests(self.directory)
        super().commit(messages)


def _wrote(message):
    """Say whether a task has written rows; where it says nothing, no guarantee was asked for, and it may have."""
    return message.result is None or message.result.producer is not None


class FaultySource(ExactaDataSource):
    """Exacta's data source, with a writer that comes to the points, and a reader that comes to `A_REQUEST`."""

    @classmethod
    def name(cls):
        return "faulty"

    def __init__(self, options):
        self.directory = options.get("fault.directory")
        super().__init__({name: value for name, value in options.items() if name.lower() != "fault.directory"})

    def streamReader(self, schema):
        watch_requests(self.directory)
        return super().streamReader(schema)

    def streamWriter(self, schema, overwrite):
        return FaultyWriter(super().streamWriter(schema, overwrite).options, self.directory)

    def writer(self, schema, overwrite):
        return FaultyBatchWriter(super().writer(schema, overwrite), self.directory)
