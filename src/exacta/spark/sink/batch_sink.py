"""The writer of a job that is no stream: `df.write.format("exacta").mode("append").save()`, all of it or nothing.

This module owns the moments of the calls; `protocol.py` and `task.py` own what happens. Spark's calls per job:

1. the planner process constructs a writer and pickles it, for the tasks and for step 3;
2. each attempt of a task calls `write` on its copy, and leaves its transaction open;
3. another process calls `commit` or `abort` on its copy.

So here, unlike in a stream, the constructor prepares, and its findings reach the commit. A *job* says whose batch it
is: a large micro-batch of `exacta.spark.write` sends its own along as an option; any other job is its own one and only
batch, under a name that nobody else has. Such a job is never replayed, so what the cluster remembers of it is deleted
once it is committed; else every job would leave a few groups more. Its name is logged when it begins, for the operator
who has to clean up after a job that died.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from exacta.client.acknowledging import AcknowledgedRuns
from exacta.client.errors import ClientError
from exacta.client.routing import Client
from exacta.client.transactions import TopicPartition
from exacta.spark.clients import client_of
from exacta.spark.error_sentences import explaining
from exacta.spark.options import SinkOptions
from exacta.spark.options.parsing import Parsed, refuse_without_effect
from exacta.spark.sink.errors import SinkError
from exacta.spark.sink.messages import Prepared, TaskResult
from exacta.spark.sink.names import QueryNames
from exacta.spark.sink.protocol import SinkDriver
from exacta.spark.sink.sink import TaskMessage, marker_of, results_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch

logger = logging.getLogger("exacta.spark")

_NAMELESS = "job"
"""The name of a job without `transactional.id.prefix`."""

_FORGET_TIMEOUT_MS = 10_000
"""A committed job does not wait longer than this for its groups to go."""

JOB_OPTION = "exacta.job"
"""The option that carries a `Job` from `exacta.spark.write` to the planner. It is no option of the user's."""

_OF_STREAMS = ("checkpointLocation", "checkpoint.moved.from", "checkpoint.adopt.batch", "replay.deterministic")


class Job(Struct, frozen=True, kw_only=True):
    """The owner of the batch that a job writes, and what the driver found out before the job began."""

    prepared: Prepared
    batch_id: int
    location: str  # of the checkpoint, in its comparable form; "": there is none
    reads: str  # digest of what the batch covers
    acknowledged: tuple[AcknowledgedRuns, ...] = ()  # with the batch

    def to_option(self) -> str:
        """Return the job as the value of an option."""
        return msgspec.json.encode(self).decode()


def job_of(options: Mapping[str, str]) -> Job | None:
    """Return the job that options carry, if any."""
    text = next((value for name, value in options.items() if name.lower() == JOB_OPTION), None)
    return None if text is None else msgspec.json.decode(text, type=Job)


def name_of_job(options: SinkOptions) -> str:
    """Return a name for a job that no other job has: two of them must not fence each other."""
    return QueryNames(options.name or _NAMELESS).job()


def check_batch_options(given: Mapping[str, str], *, overwrite: bool) -> None:
    """Check what only a batch job needs; raises `OptionError`."""
    problems = Parsed()
    if overwrite:
        problems.problems.append(
            'a topic cannot be overwritten: use mode("append"), or delete the topic\'s records first '
            "(kafka-delete-records) if you mean to replace them"
        )
    with problems.noting():
        refuse_without_effect(given, _OF_STREAMS, "on a batch, which has no checkpoint and is never replayed")
    problems.finished()


def without_checkpoint(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a stream that mean something for a batch too."""
    of_streams = {name.lower() for name in _OF_STREAMS}
    return {name: value for name, value in given.items() if name.lower() not in of_streams}


class ExactaBatchWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """The writer of the rows of one job, all of them or none."""

    def __init__(self, options: SinkOptions, job: Job | None) -> None:
        self.options = options
        self._job = self._begin() if job is None and options.exactly_once else job

    @explaining
    def _begin(self) -> Job:
        """Prepare a job that is its own batch."""
        name = name_of_job(self.options)
        logger.info(
            "batch job %s begins; should it die, `exacta spark clean --query %s` finishes or aborts it", name, name
        )
        marker = marker_of(self._client(), self.options)
        prepared = self._driver(name, query_id=name, location="", marker=marker).prepare()
        return Job(prepared=prepared, batch_id=0, location="", reads="")

    @explaining
    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        """Write one attempt of one task; its transaction stays open."""
        from pyspark import TaskContext

        from exacta.spark.sink.task import write_at_least_once, write_task

        context = TaskContext.get()
        assert context is not None
        client, job = self._client(), self._job
        task, attempt = context.partitionId(), context.attemptNumber()
        if job is None:
            write_at_least_once(client, self.options, iterator, rotation=task)
            return TaskMessage(None)
        return TaskMessage(
            write_task(
                client,
                self.options,
                job.prepared,
                iterator,
                batch_id=job.batch_id,
                task=task,
                attempt=attempt,
                application=context.getLocalProperty("spark.app.name") or "",
            )
        )

    @explaining
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the job whose tasks sent `messages`."""
        job = self._job
        if job is None:
            return
        results = results_of(messages)
        done = [result for result in results if result is not None]
        if len(done) < len(results):
            raise SinkError("Spark asked to commit a job some of whose tasks have sent nothing")
        self._driver_of(job).commit(done, job.batch_id, tasks=len(done), reads=job.reads, acknowledged=job.acknowledged)
        if not job.location:
            self._forget(job, done)

    @explaining
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Abort the job, unless it was decided."""
        job = self._job
        if job is not None:
            self._driver_of(job).abort(results_of(messages), driver=job.prepared.driver)

    def _forget(self, job: Job, results: list[TaskResult]) -> None:
        """Delete what the cluster remembers of a job that is committed; where it may not, that expires."""
        from exacta.spark.cleaning import forget

        client, name = self._client(), job.prepared.name
        tasks = [result.task for result in results if result.producer is not None and not result.shared]
        try:
            forget(client, name, tasks, client.deadline(_FORGET_TIMEOUT_MS))
        except ClientError as error:
            logger.info("the groups of batch job %s are left to expire: %s", name, error)

    def _client(self) -> Client:
        return client_of(self.options.cluster, call_timeout_ms=self.options.delivery_timeout_ms)

    def _driver_of(self, job: Job) -> SinkDriver:
        prepared = job.prepared
        return self._driver(prepared.name, query_id=prepared.query_id, location=job.location, marker=prepared.marker)

    def _driver(self, name: str, *, query_id: str, location: str, marker: TopicPartition) -> SinkDriver:
        """Return the driver's half of the protocol; of a micro-batch, `exacta.spark.write` looks after the note."""
        return SinkDriver(
            self._client(),
            name,
            query_id=query_id,
            location=location,
            marker=marker,
            transaction_timeout_ms=self.options.transaction_timeout_ms,
            query_name=self.options.query_name,
        )
