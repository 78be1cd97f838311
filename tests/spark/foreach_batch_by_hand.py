"""The little that `exacta.spark.write` asks of Spark, made by hand: a micro-batch, its jobs, and its checkpoint."""

import pickle
from types import SimpleNamespace

import pyarrow as pa

from exacta.spark import foreach_batch
from exacta.spark.options import sink_options
from exacta.spark.sink.batch_sink import ExactaBatchWriter, job_of
from tests.spark.clusters import new_topic

CONF = {"spark.app.name": "a job"}
FIELD = SimpleNamespace(name="value", dataType=SimpleNamespace(simpleString=lambda: "string"))


class Frame:
    """A micro-batch: what Spark's DataFrame is to `write`."""

    schema = SimpleNamespace(fields=[FIELD])
    sparkSession = SimpleNamespace(conf=CONF)  # as in Spark Connect: it tells nothing of the query

    def __init__(self, rows):
        self.rows = rows
        self.computed = []  # how often, and by whom


class Spark:
    """A Spark for `write`: it collects rows, and runs jobs of two tasks."""

    def __init__(self, monkeypatch):
        self._monkeypatch = monkeypatch
        self.dies = lambda step: None
        monkeypatch.setattr(foreach_batch, "_rows_up_to", self.collect)
        monkeypatch.setattr(foreach_batch, "partitions_of", lambda frame: 1)
        monkeypatch.setattr(foreach_batch, "_save", self.save)
        monkeypatch.setattr(foreach_batch, "_drain", lambda frame: frame.computed.append("nobody"))

    def collect(self, frame, most_of_each, *, few):
        frame.computed.append("driver")
        self.dies("collecting")
        rows = frame.rows[: most_of_each + 1]
        if few:
            table = pa.table({"value": [str(row) for row in rows]})
            return foreach_batch.Collected(table, cut=len(rows) > most_of_each, partitions=0)
        table = pa.table({"value": [str(row) for row in rows], "number": range(len(rows))})
        return foreach_batch._told(table, most_of_each)

    def save(self, frame, options):
        frame.computed.append("tasks")
        job = job_of(options)
        writers = {name: value for name, value in options.items() if name != "exacta.job"}
        writer = pickle.dumps(ExactaBatchWriter(sink_options(writers), job))
        messages = []
        for task in range(2):
            context = SimpleNamespace(
                partitionId=lambda task=task: task, attemptNumber=lambda: 0, getLocalProperty=CONF.get
            )
            self._monkeypatch.setattr("pyspark.TaskContext.get", lambda context=context: context)
            batch = pa.RecordBatch.from_pydict({"value": [str(row) for row in frame.rows[task::2]]})
            messages.append(pickle.loads(writer).write(iter([batch])))
        try:
            self.dies("tasks done")
            pickle.loads(writer).commit(messages)
        except Exception:
            pickle.loads(writer).abort(messages)
            raise


class Query:
    """A query whose sink is a topic, by default one of its own with two partitions, and its checkpoint in `place`."""

    def __init__(self, bootstrap, place, topic=None):
        (place / "offsets").mkdir()
        self.query_id = f"query-{place.name}-{id(place)}"
        (place / "metadata").write_text(f'{{"id":"{self.query_id}"}}')
        self.base = 0
        self.bootstrap, self.checkpoint, self.topic = bootstrap, place, topic or new_topic(bootstrap, 2)
        self.options = {
            "kafka.bootstrap.servers": bootstrap,
            "topic": self.topic,
            "checkpointLocation": str(place),
        }


def plan(query, batch_id, until):
    (query.checkpoint / "offsets" / str(batch_id)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"t":{{"0":{until}}}}}')


def restarted(monkeypatch):
    """The knowledge of a process about its sinks goes with the process."""
    monkeypatch.setattr("exacta.spark.sink.process_memory._memories", {})
