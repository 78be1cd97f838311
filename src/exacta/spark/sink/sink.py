"""The writer that Spark sees: it turns Spark's calls into the steps of the transaction protocol.

This module owns the moments of the calls; `protocol.py` and `task.py` own what happens. Spark's calls per micro-batch:

1. the planner process constructs a writer and pickles it twice, for the tasks;
2. each attempt of a task calls `write` on its copy;
3. another process constructs a writer once more and calls `commit` or `abort` on that one.

So the constructor must not fence anything: in step 3 it would fence the transactions about to be committed. Only the
planner pickles, so preparing belongs to pickling. The writer learns the batch id in the tasks and in `commit`, never
in step 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from exacta.client.routing import Client
from exacta.client.transactions import TopicPartition
from exacta.spark.clients import client_of
from exacta.spark.error_sentences import explained, explaining, refused_while_pickling
from exacta.spark.options import SinkOptions
from exacta.spark.sink import last_prepared
from exacta.spark.sink.checkpoint import Checkpoint
from exacta.spark.sink.errors import SinkError
from exacta.spark.sink.messages import Prepared, TaskResult
from exacta.spark.sink.note import SinkNotes
from exacta.spark.sink.protocol import SinkDriver
from exacta.spark.sink.written_topics import partitions_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch


# A dataclass, since a class of PySpark cannot be a `Struct` as well.
@dataclass
class TaskMessage(WriterCommitMessage):  # type: ignore[misc]
    """Carries a task's result to the driver; None where no guarantee hangs on it."""

    result: TaskResult | None


class ExactaStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """The writer of the micro-batches of one query, each exactly once."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = options
        self._prepared: Prepared | None = None
        self._noted = False

    # --- the planner --------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Prepare the batch, once, since pickling is what only the planner does; then pickle as usual."""
        if not self._noted:
            with refused_while_pickling(), explained(self.options.bootstrap):
                if self.options.exactly_once:
                    self._prepared = self.driver().prepare()
                    last_prepared.remember(self._prepared.name, self._prepared.driver)
                else:
                    self._notes().keep_without_records()
            self._noted = True
        return dict(self.__dict__)

    # --- the tasks ----------------------------------------------------------------------------------------------------

    @explaining
    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        """Write one attempt of one task; its transaction stays open."""
        from pyspark import TaskContext

        from exacta.spark.sink.task import write_at_least_once, write_task

        context = TaskContext.get()
        assert context is not None
        if not self.options.exactly_once:
            write_at_least_once(self.client(), self.options, iterator, rotation=context.partitionId())
            return TaskMessage(None)
        assert self._prepared is not None
        check_running(self._prepared.query_id, context.getLocalProperty("sql.streaming.queryId"))
        batch_id = context.getLocalProperty("streaming.sql.batchId")
        assert batch_id is not None
        result = write_task(
            self.client(),
            self.options,
            self._prepared,
            iterator,
            batch_id=int(batch_id),
            task=context.partitionId(),
            attempt=context.attemptNumber(),
            application=context.getLocalProperty("spark.app.name") or "",
        )
        return TaskMessage(result)

    # --- the commit process -------------------------------------------------------------------------------------------

    @explaining
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commit the batch whose tasks sent `messages`."""
        if not self.options.exactly_once:
            return
        results = results_of(messages)
        missing = [task for task, result in enumerate(results) if result is None]
        if missing:
            raise SinkError(f"Spark asked to commit batch {batchId} without tasks {missing}")
        done = [result for result in results if result is not None]
        reads = self._checkpoint().digest_of_batch(batchId)
        self.driver().commit(done, batchId, tasks=len(messages), reads=reads)

    @explaining
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Abort the batch, unless it was decided."""
        if self.options.exactly_once:
            notes = self._notes()
            # A job that failed, or a query that was stopped: the tasks have told nothing.
            prepared = last_prepared.recall(notes.identity.name)
            driver_of(self.client(), self.options, notes).abort(results_of(messages), driver=prepared)

    # --- shared -------------------------------------------------------------------------------------------------------

    def client(self) -> Client:
        """Return the client of this process."""
        return client_of(self.options.cluster, call_timeout_ms=self.options.delivery_timeout_ms)

    def _checkpoint(self) -> Checkpoint:
        assert self.options.checkpoint_location is not None
        return Checkpoint(self.options.checkpoint_location)

    def _notes(self) -> SinkNotes:
        return SinkNotes.of(self._checkpoint(), self.options)

    def driver(self) -> SinkDriver:
        """Return the driver's half of the protocol for this query."""
        return driver_of(self.client(), self.options, self._notes())


def driver_of(client: Client, options: SinkOptions, notes: SinkNotes, *, application: str = "") -> SinkDriver:
    """Return the driver's half of the protocol for a sink of a query."""
    return SinkDriver(
        client,
        notes.identity.name,
        query_id=notes.identity.query_id,
        location=notes.identity.location,
        marker=marker_of(client, options),
        transaction_timeout_ms=options.transaction_timeout_ms,
        replay_deterministic=options.replay_deterministic,
        moved_from=notes.moved_from,
        notes=notes,
        query_name=options.query_name,
        application=application,
    )


def marker_of(client: Client, options: SinkOptions) -> TopicPartition:
    """Return the partition that the records lie at; raises `SinkError` where it does not exist."""
    topic = options.marker_topic or options.topic
    assert topic is not None
    partitions_of(client, topic)
    return TopicPartition(topic, 0)


def check_running(query_id: str, running: str | None) -> None:
    """Refuse a checkpoint that is not the running query's; `running` is None where that is not told."""
    if running is not None and running != query_id:
        raise SinkError(
            f"option 'checkpointLocation' leads to the checkpoint of query {query_id}, but query {running} is running: "
            "give the writer the location that the query itself uses"
        )


def results_of(messages: list[WriterCommitMessage | None]) -> list[TaskResult | None]:
    """Return what the tasks said, None for those that said nothing."""
    return [message.result if isinstance(message, TaskMessage) else None for message in messages]
