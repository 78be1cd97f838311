"""The sink's transaction protocol on a task's side (docs/explanation/spark-sink-protocol.md, step 2).

This module owns one attempt of one task: its transaction, left open for the driver to end, with the replay marker as
its last write. Spark may run several attempts of a task, one after the other or side by side; each has a transactional
id of its own. If all tasks share the driver's transaction, the decision record in it serves as the marker.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from exacta.client.errors import ClientError, KafkaError
from exacta.client.routing import Client
from exacta.client.transactions import (
    CommittedOffset,
    Producer,
    TopicPartition,
    commit_offset,
    describe_transaction,
    describe_transactions,
    end_transaction,
    new_producer,
)
from exacta.spark.options import TASK_SCOPE, SinkOptions
from exacta.spark.sink.errors import NewerDriver, SinkError
from exacta.spark.sink.incarnations import holds, is_current, supersede, take_over
from exacta.spark.sink.messages import Prepared, TaskResult
from exacta.spark.sink.names import MARKER_METADATA, QueryNames
from exacta.spark.sink.row_writer import RowWriter

_ABORT_TIMEOUT_MS = 2_000
"""The time for which a failing attempt tries to abort its transaction itself. If it cannot, the driver's sweep does."""

_FURTHER_ON = 100
"""The attempts of a stage that is run again are numbered on from multiples of this. Spark tries a task 4 times."""
_MOST_ATTEMPTS = 10_000


def write_task(
    client: Client,
    options: SinkOptions,
    prepared: Prepared,
    batches: Iterator[Any],
    *,
    batch_id: int,
    task: int,
    attempt: int,
    application: str = "",
) -> TaskResult:
    """Write a task's rows into a transaction and leave it open; return what the driver needs to end it.

    The transaction is the attempt's own, or with 'transaction.scope' batch the driver's, which all tasks share.

    A task whose rows are committed already only drains its input (state stores of the same task commit that way).
    """
    replayed = _is_committed(prepared, batch_id, task)
    told = partial(
        TaskResult,
        task=task,
        driver=prepared.driver,
        partly=prepared.is_committed_in_part(batch_id),
        application=application,
    )
    rows = (batch for batch in batches if batch.num_rows)
    first = next(rows, None)
    if replayed or first is None:
        count = sum(batch.num_rows for batch in rows) + (0 if first is None else first.num_rows)
        return told(attempt=attempt, producer=None, rows=count, replayed=replayed)
    alone = options.transaction_scope == TASK_SCOPE
    taken: Collection[TopicPartition] = ()
    if alone:
        attempt, producer = _take(client, prepared, task, attempt, options.transaction_timeout_ms)
    else:
        producer, taken = _share(client, prepared, batch_id, task, attempt)
    writer = RowWriter(client, options, producer, rotation=batch_id + task, taken=taken)
    try:
        writer.write(first)
        for batch in rows:
            writer.write(batch)
        writer.flush()
        if alone:
            marker = CommittedOffset(batch_id, f"{MARKER_METADATA}{batch_id}:{attempt}")
            commit_offset(client, producer, QueryNames(prepared.name).marker_group(task), prepared.marker, marker)
    except BaseException as error:
        with suppress(ClientError):
            _give_up(client, options, producer, alone=alone)
        if isinstance(error, KafkaError) and error.fenced:
            raise SinkError(
                f"the transaction of task {task} of batch {batch_id} was ended while the task was writing: another run "
                "of the query has begun, or the task took longer than option 'kafka.transaction.timeout.ms' "
                f"({options.transaction_timeout_ms}), or the broker's machine stopped"
            ) from error
        raise
    finally:
        writer.close()
    return told(attempt=attempt, producer=producer, rows=writer.rows, partitions=writer.partitions)


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


def _give_up(client: Client, options: SinkOptions, producer: Producer, *, alone: bool) -> None:
    """Abort the transaction of an attempt that failed.

    If all tasks share the transaction, none of them goes on under the same epoch, nor does this task when it is run
    again: its records would begin another transaction, and be taken for repeats of the aborted ones.
    """
    deadline = client.deadline(_ABORT_TIMEOUT_MS)
    if alone:
        end_transaction(client, producer, commit=False, deadline=deadline)
    else:
        supersede(client, producer, transaction_timeout_ms=options.transaction_timeout_ms, deadline=deadline)


def _share(
    client: Client, prepared: Prepared, batch_id: int, task: int, attempt: int
) -> tuple[Producer, frozenset[TopicPartition]]:
    """Return the driver's incarnation, for a task that writes into its transaction, and the partitions written there.

    The rows of one attempt cannot be taken back apart from the rest, and a second attempt would number its records from
    0 again, which a broker takes for repeats. Spark begins to count attempts again when it runs a stage again, so the
    partitions tell: a task must not write to a partition that is in the transaction already. (Two tasks that begin in
    the same instant do not see each other; `commit` finds them out if both come to an end.)
    """
    if attempt:
        raise SinkError(
            f"task {task} of batch {batch_id} failed once, or runs twice (spark.speculation), and with "
            "'transaction.scope' batch no task can be repeated: the batch is given up; start the query again. The "
            "first failure is in Spark's log. Tasks that write to the same partition fail so too: see "
            "exacta.spark.one_task_per_partition(df, ...)"
        )
    found = describe_transaction(client, prepared.driver.transactional_id)
    if found is None or not holds(prepared.driver, found):
        raise SinkError(
            f"the transaction of batch {batch_id} was ended before its task {task} began, because another task failed "
            "or a newer run of the query has begun: the batch is given up; start the query again"
        )
    return prepared.driver, found.partitions if found.is_open else frozenset()


def _take(
    client: Client, prepared: Prepared, task: int, attempt: int, transaction_timeout_ms: int
) -> tuple[int, Producer]:
    """Take over the transactional id of this attempt, unless a newer driver has taken the query over.

    Returns the attempt's number too. If the id has a transaction open, that transaction is a sibling's, since the
    driver has swept before the batch: it is the same attempt of a stage that Spark runs again, which counts its
    attempts again. The sibling may have been counted already, so it is left alone, and this attempt takes a number
    further on.

    The cluster is asked before, so that a straggler of an older run takes nothing away from a task of this run; if it
    does so in the moment between, that task is fenced and its batch cannot be decided. The cluster is asked again
    after, so that an attempt which an abort has looked for and not found opens no transaction. The id is taken over by
    name, not from an expected incarnation: KIP-360 takes two that expect the same one for a client that repeats itself,
    and gives both the same epoch.
    """
    names = QueryNames(prepared.name)
    for number in range(attempt, _MOST_ATTEMPTS, _FURTHER_ON):
        transactional_id = names.attempt(task, number)
        found = describe_transactions(client, [prepared.driver.transactional_id, transactional_id])
        if not holds(prepared.driver, found[prepared.driver.transactional_id]):
            raise NewerDriver(prepared.name)
        state = found[transactional_id]
        if state is not None and state.is_open:
            continue
        producer = take_over(client, transactional_id, transaction_timeout_ms=transaction_timeout_ms)
        if not is_current(client, prepared.driver):
            raise NewerDriver(prepared.name)
        return number, producer
    raise SinkError(f"task {task} has too many attempts with open transactions: look for what makes them fail")


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
