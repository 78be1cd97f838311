"""The sink's transaction protocol on a task's side (DESIGN.md §5, step 2).

Owns one attempt of one task: its transaction, left open for the driver to end, with the replay marker as its last
write. Spark may run several attempts of a task, one after the other or side by side; each has a transactional id of
its own. Where all tasks share the driver's transaction, the decision record in it is marker enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from exacta.client.errors import ClientError, KafkaError
from exacta.client.routing import Client
from exacta.client.transactions import (
    CommittedOffset,
    Producer,
    commit_offset,
    end_transaction,
    new_producer,
)
from exacta.spark.incarnations import is_current, take_over
from exacta.spark.messages import Prepared, TaskResult
from exacta.spark.names import QueryNames
from exacta.spark.options import TASK_SCOPE, SinkOptions
from exacta.spark.row_writer import RowWriter
from exacta.spark.sink_errors import NewerDriver, SinkError

#: How long a failing attempt tries to abort its transaction itself; the driver's sweep is there if it cannot.
_ABORT_TIMEOUT_MS = 2_000


def write_task(
    client: Client,
    options: SinkOptions,
    prepared: Prepared,
    batches: Iterator[Any],
    *,
    batch_id: int,
    task: int,
    attempt: int,
) -> TaskResult:
    """Write a task's rows into a transaction and leave it open; return what the driver needs to end it.

    The transaction is the attempt's own, or with 'transaction.scope' batch the driver's, which all tasks share.

    A task whose rows are committed already only drains its input (state stores of the same task commit that way).
    """
    replayed = _is_committed(prepared, batch_id, task)
    told = partial(
        TaskResult,
        task=task,
        attempt=attempt,
        driver=prepared.driver,
        partly=batch_id == prepared.decided_batch and prepared.committed_tasks is not None,
    )
    rows = (batch for batch in batches if batch.num_rows)
    first = next(rows, None)
    if replayed or first is None:
        count = sum(batch.num_rows for batch in rows) + (0 if first is None else first.num_rows)
        return told(producer=None, rows=count, replayed=replayed)
    names = QueryNames(prepared.name)
    alone = options.transaction_scope == TASK_SCOPE
    if alone:
        producer = _take(client, prepared, names.attempt(task, attempt), options.transaction_timeout_ms)
    else:
        producer = _share(client, prepared, batch_id, task, attempt)
    writer = RowWriter(client, options, producer, rotation=batch_id + task)
    try:
        writer.write(first)
        for batch in rows:
            writer.write(batch)
        writer.flush()
        if alone:
            marker = CommittedOffset(batch_id, f"{batch_id}:{attempt}")
            commit_offset(client, producer, names.marker_group(task), prepared.marker, marker)
    except BaseException as error:
        with suppress(ClientError):
            end_transaction(client, producer, commit=False, deadline=client.deadline(_ABORT_TIMEOUT_MS))
        if isinstance(error, KafkaError) and error.fenced:
            raise SinkError(
                f"the transaction of task {task} of batch {batch_id} was ended while the task was writing: another run "
                "of the query has begun, or the task took longer than option 'kafka.transaction.timeout.ms' "
                f"({options.transaction_timeout_ms})"
            ) from error
        raise
    finally:
        writer.close()
    return told(producer=producer, rows=writer.rows, partitions=writer.partitions)


def write_at_least_once(client: Client, options: SinkOptions, batches: Iterator[Any], *, rotation: int) -> int:
    """Write rows that are visible at once, as Spark's own sink does: a repeated task writes them again."""
    writer = RowWriter(client, options, new_producer(client), rotation=rotation)
    try:
        for batch in batches:
            writer.write(batch)
        writer.flush()
    finally:
        writer.close()
    return writer.rows


def _share(client: Client, prepared: Prepared, batch_id: int, task: int, attempt: int) -> Producer:
    """Return the driver's own incarnation, for a task that writes into its transaction.

    What one attempt has written cannot be taken back apart from the rest, and a second one would number its records
    from 0 again, which a broker takes for repeats. Which attempt this is, is not quite known: after a stage was run
    again Spark begins counting anew. `commit` finds out what slips through here.
    """
    if attempt:
        raise SinkError(
            f"task {task} of batch {batch_id} failed once, or runs twice (spark.speculation), and with "
            "'transaction.scope' batch no task can be repeated: the batch is given up; start the query again. The "
            "first failure is in Spark's log. Tasks that write to the same partition fail so too: see "
            "exacta.spark.one_task_per_partition(df, ...)"
        )
    if not is_current(client, prepared.driver):
        raise NewerDriver(prepared.name)
    return prepared.driver


def _take(client: Client, prepared: Prepared, transactional_id: str, transaction_timeout_ms: int) -> Producer:
    """Take over the transactional id of this attempt, unless a newer driver has taken the query over.

    Asked before, so that a straggler of an older run takes nothing away from a task of this one; where it does in the
    moment between, that task is fenced and its batch cannot be decided. Asked after, so that what an abort has looked
    at without finding this attempt opens no transaction. By name, not from an expected incarnation: KIP-360 takes two
    that expect the same one for a client that repeats itself, and gives both the same epoch.
    """
    if not is_current(client, prepared.driver):
        raise NewerDriver(prepared.name)
    producer = take_over(client, transactional_id, transaction_timeout_ms=transaction_timeout_ms)
    if not is_current(client, prepared.driver):
        raise NewerDriver(prepared.name)
    return producer


def _is_committed(prepared: Prepared, batch_id: int, task: int) -> bool:
    if batch_id < prepared.decided_batch:
        raise SinkError(
            f"the checkpoint is older than the output: it repeats batch {batch_id}, but batch "
            f"{prepared.decided_batch} of this query is committed; was it restored from a copy? Start the query with a "
            "new checkpoint"
        )
    if batch_id > prepared.decided_batch:
        return False
    return prepared.committed_tasks is None or task in prepared.committed_tasks
