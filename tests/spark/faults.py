"""Exacta's data source with faults: killed processes and raised errors at the points of the sink's protocol.

A fault is *armed* by a file in the directory of option `fault.directory` and strikes once. The classes travel to
Spark's workers by value (`travel_by_value`), so nothing of the tests need be importable there.
"""

import os
import signal
import sys
from pathlib import Path

from exacta.spark.datasource import ExactaDataSource
from exacta.spark.sink import ExactaStreamWriter

BETWEEN_THE_ENDS = "between the ends"
#: The whole query is killed.
KILL_POINTS = ("tasks writing", "after all tasks", "after the decision", BETWEEN_THE_ENDS, "after commit")
#: One task's worker is killed, or its task fails, after the replay marker and before it could tell.
WORKER_DIES = "worker dies after its marker"
TASK_FAILS = "task fails after its marker"
#: The commit raises after the decision: Spark then calls abort with the same messages.
COMMIT_RAISES = "commit raises after the decision"


def travel_by_value() -> None:
    """Make Spark send the classes of this module whole."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


def arm(directory: Path, point: str) -> None:
    """Let a fault strike once, at `point`."""
    (directory / "armed").write_text(point)


def struck(directory: Path) -> list[str]:
    """Return the points at which a fault has struck."""
    noted = directory / "struck"
    return noted.read_text().splitlines() if noted.exists() else []


def strikes(directory: str, *points: str) -> bool:
    """Return, once, whether one of `points` is armed."""
    armed = Path(directory) / "armed"
    try:
        point = armed.read_text()
        if point not in points:
            return False
        armed.unlink()
    except FileNotFoundError:
        return False  # not armed, or another process was quicker
    with (Path(directory) / "struck").open("a") as file:
        file.write(point + "\n")
    return True


def kill_tree(root: int) -> None:
    """Kill a process and all its descendants, this process last."""
    import psutil

    for process in [psutil.Process(root), *psutil.Process(root).children(recursive=True)]:
        if process.pid != os.getpid():
            process.send_signal(signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


class FaultyWriter(ExactaStreamWriter):
    """Exacta's writer, with a fault where one is armed."""

    def __init__(self, options, directory):
        super().__init__(options)
        self.directory = directory

    def kill(self, *points):
        if strikes(self.directory, *points):
            kill_tree(int((Path(self.directory) / "pid").read_text()))

    def write(self, iterator):
        def halved(batches):
            for batch in batches:
                yield batch.slice(0, batch.num_rows // 2)
                self.kill("tasks writing")
                yield batch.slice(batch.num_rows // 2)

        message = super().write(halved(iterator))
        if message.result is None or message.result.producer is not None:
            if strikes(self.directory, WORKER_DIES):
                os.kill(os.getpid(), signal.SIGKILL)
            if strikes(self.directory, TASK_FAILS):
                raise RuntimeError("this task fails because a test wants it to")
        return message

    def driver(self):
        driver = super().driver()
        decide, decide_and_end, end_all = driver.decide, driver.decide_and_end, driver.end_all
        armed = Path(self.directory) / "armed"

        def after_the_decision():
            self.kill("after the decision")
            if strikes(self.directory, COMMIT_RAISES):
                raise RuntimeError("this commit fails because a test wants it to")

        def faulty_decide(*arguments):
            decide(*arguments)
            after_the_decision()

        def faulty_decide_and_end(*arguments):
            if armed.exists() and armed.read_text() == BETWEEN_THE_ENDS:
                return False  # there is no such moment where all end at once
            at_once = decide_and_end(*arguments)
            if at_once:
                after_the_decision()
            return at_once

        def faulty_end_all(entries):
            if len(entries) > 1 and armed.exists():
                end_all(list(entries)[:1])
                self.kill(BETWEEN_THE_ENDS)
            return end_all(entries)

        driver.decide, driver.decide_and_end, driver.end_all = faulty_decide, faulty_decide_and_end, faulty_end_all
        return driver

    def commit(self, messages, batchId):
        wrote = any(message.result is not None and message.result.producer for message in messages)
        if wrote:
            self.kill("after all tasks")
        super().commit(messages, batchId)
        if wrote:
            self.kill("after commit")


class FaultySource(ExactaDataSource):
    """Exacta's data source, with a writer that has faults."""

    @classmethod
    def name(cls):
        return "faulty"

    def __init__(self, options):
        self.directory = options.get("fault.directory")
        super().__init__({name: value for name, value in options.items() if name.lower() != "fault.directory"})

    def streamWriter(self, schema, overwrite):
        return FaultyWriter(super().streamWriter(schema, overwrite).options, self.directory)
