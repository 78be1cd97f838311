"""Exacta's data source with a diary: which of its methods Spark called, in which process and for which batch.

The diary is a file of JSON lines in the directory of option `diary`. The classes travel to Spark's workers by value.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from exacta.spark.datasource import ExactaDataSource
from exacta.spark.sink.sink import ExactaStreamWriter


class Call(NamedTuple):
    """One call: of which method, by which process, for which batch and task where it is told."""

    method: str
    process: int
    batch: int | None = None
    task: int | None = None


def travel_by_value() -> None:
    """Make Spark send the classes of this module whole."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


def calls(directory: Path) -> Iterator[Call]:
    """Yield the calls in their order."""
    for line in (directory / "diary").read_text().splitlines():
        yield Call(*json.loads(line))


def note(directory: str, method: str, batch: int | None = None, task: int | None = None) -> None:
    """Write a call down; lines of several processes do not mix, they are appended in one write."""
    descriptor = os.open(os.path.join(directory, "diary"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, (json.dumps(Call(method, os.getpid(), batch, task)) + "\n").encode())
    finally:
        os.close(descriptor)


class ObservedWriter(ExactaStreamWriter):
    """Exacta's writer, which notes what is done with it."""

    def __init__(self, options, directory):
        super().__init__(options)
        self.directory = directory

    def __getstate__(self):
        note(self.directory, "pickle")
        return super().__getstate__()

    def write(self, iterator):
        from pyspark import TaskContext

        context = TaskContext.get()
        batch = int(context.getLocalProperty("streaming.sql.batchId"))
        note(self.directory, "write", batch, context.partitionId())
        return super().write(iterator)

    def commit(self, messages, batchId):
        note(self.directory, "commit", batchId)
        super().commit(messages, batchId)


class ObservedSource(ExactaDataSource):
    """Exacta's data source, which notes when it is asked for a writer."""

    @classmethod
    def name(cls):
        return "observed"

    def __init__(self, options):
        self.directory = options.get("diary")
        super().__init__({name: value for name, value in options.items() if name.lower() != "diary"})

    def streamWriter(self, schema, overwrite):
        note(self.directory, "streamWriter")
        return ObservedWriter(super().streamWriter(schema, overwrite).options, self.directory)
