"""Write a micro-batch exactly once from inside a function of `foreachBatch` (`exacta.spark.write`).

This module owns the order of the steps and the choice between the driver alone and tasks. `protocol.py` and
`whole_batch.py` own what happens, `batch_sink.py` what tasks do, `process_memory.py` what is remembered from batch to
batch.

Theory of operation. The driver prepares the batch itself, and finds out by that whether it is committed already. If it
is, the rows are computed and thrown away, as the tasks of the streaming sink do with theirs: a state store commits, and
a watermark advances, only where the plan runs. This module cannot tell for sure whether the plan has either, so it
always computes the rows.

If the batch is most likely small, the driver asks Spark for the rows, up to a limit for each partition, and prepares at
the same time, since it would have to wait for both Spark and the cluster. If it got all of the rows, it writes them in
one transaction. If not, it starts a job whose tasks write, as those of the streaming sink do. The batch is then
computed twice, so after a large batch the first attempt is left out until a small one comes.

The rows come by a filter on their number within the partition, not by `limit`. A limit would cost a shuffle; and a task
that stops in the middle of its input leaves its state store uncommitted. Each partition may send its share of
`driver.bytes`, by the size of a row as far as it is known: so the driver's memory has a bound even if there are many
partitions. The numbers come along and show whether a partition was cut; then tasks write. (If the last batch was small
beside what one partition may send, the numbers stay away, and the count of rows shows it.)

Messages of a work queue are acknowledged where the batch is decided: here, or where the job of the tasks is committed.
That is a process of Spark's, so they are named by numbers, which travel there (decision 0040).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from exacta.client.acknowledging import Acknowledgement, can_acknowledge
from exacta.client.acknowledging import named as messages_to_acknowledge
from exacta.client.routing import Client
from exacta.spark.arrow.rows import check_write_columns
from exacta.spark.clients import client_of
from exacta.spark.error_sentences import explained
from exacta.spark.options import OptionError, SinkOptions
from exacta.spark.options.foreach_batch import ForeachBatchOptions, foreach_batch_options
from exacta.spark.options.parsing import as_text
from exacta.spark.sink.checkpoint import Checkpoint
from exacta.spark.sink.errors import NoWorkQueue, SinkError
from exacta.spark.sink.messages import Prepared
from exacta.spark.sink.note import SinkNotes
from exacta.spark.sink.process_memory import SinkMemory, memory_of, used_sinks
from exacta.spark.sink.protocol import SinkDriver
from exacta.spark.sink.running_query import RunningQuery, application_of, partitions_of, run_id, running_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("exacta.spark")

_ROW_NUMBER_BITS = 33
"""`monotonically_increasing_id` counts a partition's rows in its lower bits."""
_ROW_NUMBERS = (1 << _ROW_NUMBER_BITS) - 1

_NUMBER = "number"
"""The column with that number. No column of the sink's has this name."""

_TOO_MUCH = "spark.driver.maxResultSize"
"""The words of Spark's error when the driver was sent more than `spark.driver.maxResultSize`."""


class Collected(NamedTuple):
    """The rows that Spark sent to the driver."""

    table: Any  # of pyarrow
    cut: bool  # a partition has more rows
    partitions: int  # at least this many


class WrittenBatch(Struct, frozen=True, kw_only=True):
    """The outcome of a call of `write`."""

    rows: int | None  # None: not told, with delivery.guarantee at-least-once
    tasks: int  # that wrote; 0: the driver alone, or nobody
    replayed: bool = False  # the batch was committed already; nothing was written

    @property
    def alone(self) -> bool:
        """Return whether the driver wrote the batch itself."""
        return not self.tasks and not self.replayed


def write(
    batch_df: DataFrame,
    batch_id: int,
    options: Mapping[str, object] | None = None,
    *,
    acknowledge: Acknowledgement | None = None,
    **named: object,
) -> WrittenBatch:
    """Write a micro-batch of a streaming query exactly once; to be called from a function of `foreachBatch`.

    `options` and `named` are the options of the streaming writer, with those of `ForeachBatchOptions`. `acknowledge`
    are Apache Pulsar messages, by the names of their subscriptions: they are acknowledged together with the batch,
    both or neither, on an Exacta. They are not if the batch was committed already (`replayed`).

    Raises `OptionError`, and `SinkError`; then the function must let the query fail: its next start repeats the batch.
    """
    wanted, given = foreach_batch_options(as_text({**(options or {}), **named}), acknowledges=acknowledge is not None)
    check_write_columns(batch_df.schema, wanted.sink.topic)
    query = running_query(batch_df)
    checkpoint = _checkpoint(batch_df, wanted.sink, query, batch_id)
    with explained(wanted.sink.bootstrap, in_worker=False):
        query_id = checkpoint.query_id()
        run = run_id(batch_df, query_id) if query is None else query.run_id
        used = used_sinks(query_id, run)
        notes = SinkNotes.of(checkpoint, wanted.sink, sink_name=wanted.sink_name, used=used, batch_id=batch_id)
        if not wanted.sink.exactly_once:
            from exacta.spark.sink.batch_sink import without_checkpoint

            notes.keep_without_records()
            used.add(wanted.sink_name)
            _save(batch_df, without_checkpoint(given))
            return WrittenBatch(rows=None, tasks=1)
        if query is not None and query.name and not wanted.sink.query_name:
            wanted = replace(wanted, sink=replace(wanted.sink, query_name=query.name))
            given = {**given, "queryName": query.name}
        call = _Call(batch_df, batch_id, wanted, checkpoint, notes, given, acknowledge)
        memory = memory_of(notes.identity.name, run)
        with memory.writing(batch_id):
            written = call.run(memory)
        used.add(wanted.sink_name)
        return written


class _Call:
    """One call of `write`."""

    def __init__(
        self,
        batch_df: DataFrame,
        batch_id: int,
        wanted: ForeachBatchOptions,
        checkpoint: Checkpoint,
        notes: SinkNotes,
        given: dict[str, str],
        acknowledge: Acknowledgement | None,
    ) -> None:
        from exacta.spark.sink.sink import driver_of

        if checkpoint.is_finished(batch_id):
            # Before anything is taken over: the query may be running elsewhere.
            raise SinkError(
                f"batch {batch_id} of the query at '{checkpoint.location}' is finished: write is for a function "
                "of foreachBatch, called with the number that Spark gives to it"
            )
        self.name = notes.identity.name
        self._batch_df = batch_df
        self._batch_id = batch_id
        self._wanted = wanted
        self._sink = wanted.sink
        self._given = given
        self._client: Client = client_of(self._sink.cluster, call_timeout_ms=self._sink.delivery_timeout_ms)
        if acknowledge is not None and not can_acknowledge(self._client):
            raise NoWorkQueue(self._client.bootstrap)
        self._acknowledged = messages_to_acknowledge(acknowledge or {})
        self._reads = checkpoint.digest_of_batch(batch_id)
        self._notes = notes
        self._driver: SinkDriver = driver_of(self._client, self._sink, notes, application=application_of(batch_df))

    def run(self, memory: SinkMemory) -> WrittenBatch:
        """Write the batch, unless it is committed already."""
        from exacta.spark.sink.whole_batch import is_committed, write_alone

        batch_id = self._batch_id
        most_rows = memory.most_rows(self._wanted.driver_rows, self._wanted.driver_bytes)
        collected = None
        if most_rows:
            prepared, collected = self._prepare_and_collect(memory, most_rows)
        else:
            prepared = self._driver.prepare()
        if is_committed(self._client, self._sink, self._driver, prepared, batch_id=batch_id, reads=self._reads):
            logger.info("batch %d of query %s is committed already: its rows are computed only", batch_id, self.name)
            if collected is None:
                _drain(self._batch_df)
            return WrittenBatch(rows=self._decided_rows(), tasks=0, replayed=True)
        if prepared.is_committed_in_part(batch_id):
            return self._by_tasks(prepared, memory)
        if collected is None or collected.cut or collected.table.num_rows > most_rows:
            return self._by_tasks(prepared, memory, asked=most_rows)
        rows = write_alone(
            self._client,
            self._sink,
            self._driver,
            prepared,
            collected.table.to_batches(),
            batch_id=batch_id,
            reads=self._reads,
            acknowledged=self._acknowledged,
        )
        memory.wrote_alone(rows)
        return WrittenBatch(rows=rows, tasks=0)

    def _prepare_and_collect(self, memory: SinkMemory, most_rows: int) -> tuple[Prepared, Collected | None]:
        """Prepare the batch while Spark computes its rows."""
        # Spark computes for this thread, which it knows; and nothing else here talks to the cluster meanwhile.
        with ThreadPoolExecutor(1, "exacta-prepare") as beside:
            preparing = beside.submit(self._driver.prepare)
            try:
                collected = self._collect(memory, most_rows)
            except Exception:
                preparing.result()  # where both failed, this is the error to read
                raise
            return preparing.result(), collected

    def _collect(self, memory: SinkMemory, most_rows: int) -> Collected | None:
        """Ask Spark for the rows, all of which it computes; None: it refused to send them, and stopped."""
        memory.expect(lambda: partitions_of(self._batch_df))
        most_of_each = memory.most_of_each(most_rows, self._wanted.driver_bytes)
        collected = _rows_up_to(self._batch_df, most_of_each, few=memory.expects_less_than(most_of_each))
        if collected is None:
            memory.was_too_much()
        else:
            memory.saw(collected.table.num_rows, collected.table.nbytes, collected.partitions)
        return collected

    def _by_tasks(self, prepared: Prepared, memory: SinkMemory, asked: int = 0) -> WrittenBatch:
        from exacta.spark.sink.batch_sink import JOB_OPTION, Job

        before = self._notes.wrote
        self._notes.deciding(self._batch_id)  # the job decides, where Spark's own file system is not at hand
        location = self._notes.identity.location
        job = Job(
            prepared=prepared,
            batch_id=self._batch_id,
            location=location,
            reads=self._reads,
            acknowledged=self._acknowledged,
        )
        _save(self._batch_df, {**self._given, JOB_OPTION: job.to_option()})
        decision = self._driver.cluster.decision()
        if decision is None or decision.batch_id != self._batch_id:
            memory.wrote_by_tasks(0, asked)
            self._notes.deciding(self._batch_id, before)
            return WrittenBatch(rows=0, tasks=1)  # no rows, so nothing was decided
        topics = [] if self._sink.topic is None else [self._sink.topic]
        self._notes.deciding(self._batch_id, self._driver.last_writes(prepared.driver, decision, topics))
        memory.wrote_by_tasks(decision.rows, asked)
        return WrittenBatch(rows=decision.rows, tasks=decision.tasks)

    def _decided_rows(self) -> int | None:
        decision = self._driver.cluster.decision()
        return None if decision is None else decision.rows


def _checkpoint(batch_df: DataFrame, sink: SinkOptions, query: RunningQuery | None, batch_id: int) -> Checkpoint:
    """Return the query's checkpoint, named by an option or found as Spark tells; raises `OptionError`."""
    from exacta.spark.sink.sink import check_running

    if query is not None and query.batch_id != batch_id:
        raise OptionError(
            f"write was called for batch {batch_id} while Spark runs batch {query.batch_id}: give it the number that "
            "Spark gave to the function"
        )
    location = sink.checkpoint_location or (None if query is None else query.checkpoint_location)
    if location is None:
        raise OptionError(
            "write cannot find out here which query is running (it can in classic Spark, in the thread in which Spark "
            "calls the function): set option 'checkpointLocation' to the query's: the query's identity lies there, "
            "and the sink's note"
        )
    checkpoint = Checkpoint(location, batch_df.sparkSession)
    if query is not None:
        check_running(checkpoint.query_id(), query.query_id)
    return checkpoint


def _rows_up_to(batch_df: DataFrame, most_of_each: int, *, few: bool) -> Collected | None:
    """Return at most this many rows of each partition, and one more if it has more; None if Spark refuses to send them.

    If `few` rows are expected, they come without their numbers: Spark has one operator less to plan, which is a tenth
    of the time of a small batch. Then a partition may have been cut if there are more rows than one partition may send.
    """
    within = f"({{}} & {_ROW_NUMBERS}L) <= {most_of_each}"
    number = "monotonically_increasing_id()"
    try:
        if few:
            table = batch_df.filter(within.format(number)).toArrow()
            return Collected(table, cut=table.num_rows > most_of_each, partitions=0)
        numbered = batch_df.selectExpr("*", f"{number} AS {_NUMBER}")
        return _told(numbered.filter(within.format(_NUMBER)).toArrow(), most_of_each)
    except Exception as error:
        if _TOO_MUCH in str(error):
            return None
        raise


def _told(table: Any, most_of_each: int) -> Collected:
    """Return what the rows' numbers say, and the rows without them."""
    import pyarrow.compute as pc

    numbers = table[_NUMBER]
    rows = table.drop_columns([_NUMBER])
    if not table.num_rows:
        return Collected(rows, cut=False, partitions=0)
    row_numbers = pc.bit_wise_and(numbers, _ROW_NUMBERS)
    partitions = (pc.max(numbers).as_py() >> _ROW_NUMBER_BITS) + 1
    return Collected(rows, cut=pc.max(row_numbers).as_py() >= most_of_each, partitions=partitions)


def _save(batch_df: DataFrame, options: Mapping[str, str]) -> None:
    batch_df.write.format("exacta").mode("append").options(**options).save()


def _drain(batch_df: DataFrame) -> None:
    batch_df.write.format("noop").mode("overwrite").save()
