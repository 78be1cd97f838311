"""A query of the sink's protocol, step by step, without Spark."""

import json
import uuid

import pyarrow as pa

from exacta.client.routing import Client
from exacta.client.transactions import TopicPartition, init_producer_id
from exacta.spark.options import SinkOptions
from exacta.spark.sink.checkpoint import Checkpoint
from exacta.spark.sink.decision import Decision, DecisionEntry
from exacta.spark.sink.names import QueryNames
from exacta.spark.sink.note import SinkNotes
from exacta.spark.sink.protocol import SinkDriver
from exacta.spark.sink.task import write_task
from tests.spark.clusters import new_topic, read_committed


class Query:
    """One query by hand, step by step."""

    def __init__(self, bootstrap, **settings):
        self.client = Client(bootstrap)
        self.topic = new_topic(bootstrap, 3)
        self.names = QueryNames(str(uuid.uuid4()))
        self.settings = settings

    def arguments(self, **settings):
        return {
            "query_id": "Q",
            "location": "file:/a",
            "marker": TopicPartition(self.topic, 0),
            "transaction_timeout_ms": 60_000,
            **self.settings,
            **settings,
        }

    def driver(self, **settings):
        return SinkDriver(self.client, self.names.name, **self.arguments(**settings))

    def noted(self, checkpoint, batch_id, **options):
        """Return the driver of a query that keeps a note in its checkpoint, where Spark has planned a batch."""
        (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
        (checkpoint / "offsets" / str(batch_id)).touch()
        (checkpoint / "metadata").write_text(json.dumps({"id": self.names.name}))
        notes = SinkNotes.of(Checkpoint(str(checkpoint)), self.options(**options))
        settings = {"query_id": notes.identity.query_id, "location": notes.identity.location, "notes": notes}
        return SinkDriver(self.client, notes.identity.name, **self.arguments(**settings))

    def write(self, driver, batch_id, rows):
        """Write a batch of one task; return what was prepared for it."""
        prepared = driver.prepare()
        driver.commit([self.task(prepared, batch_id, 0, rows)], batch_id, tasks=1, reads=f"batch {batch_id}")
        return prepared

    def options(self, **settings):
        return SinkOptions(bootstrap=self.client.bootstrap, topic=self.topic, transaction_timeout_ms=60_000, **settings)

    def task(self, prepared, batch_id, task, rows, attempt=0, partition=None, **settings):
        columns = {"value": pa.array([b"%d" % row for row in rows])}
        if partition is not None:
            columns["partition"] = pa.array([partition] * len(rows), pa.int32())
        batches = [pa.RecordBatch.from_pydict(columns)]
        return write_task(
            self.client,
            self.options(**settings),
            prepared,
            iter(batches),
            batch_id=batch_id,
            task=task,
            attempt=attempt,
        )

    def decide_and_time_out(self, batch_id, timed_out):
        """Leave behind a decided batch of three tasks, some of whose transactions the broker aborted since."""
        driver = self.driver()
        prepared = driver.prepare()
        results = [self.task(prepared, batch_id, task, [10 * batch_id + task]) for task in range(3)]
        entries = [DecisionEntry(result.task, 0, *result.producer[1:]) for result in results]
        driver.cluster.decide(prepared.driver, Decision(batch_id, 3, "Q", "file:/a", "these", tuple(entries)))
        for task in timed_out:  # what the broker does to a transaction whose time is up
            init_producer_id(self.client, self.names.attempt(task, 0), transaction_timeout_ms=60_000)

    def rows(self):
        return sorted(int(value) for _, _, value in read_committed(self.client.bootstrap, self.topic))
