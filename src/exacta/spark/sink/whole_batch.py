"""Find out on the driver whether a micro-batch is committed already, and write a small one in one transaction.

This module owns the two steps that `exacta.spark.write` adds to the protocol, without Spark. Both are steps of the
protocol for a batch of one task. That task shares the driver's transaction, so its rows and the decision record are one
transaction, whose end is the commit point. Nothing else is left to be ended, on any cluster.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from exacta.client.acknowledging import AcknowledgedRuns
from exacta.client.errors import ClientError
from exacta.client.routing import Client
from exacta.spark.options import BATCH_SCOPE, SinkOptions
from exacta.spark.sink.messages import Prepared, TaskResult
from exacta.spark.sink.protocol import SinkDriver
from exacta.spark.sink.task import write_task


def is_committed(
    client: Client, options: SinkOptions, driver: SinkDriver, prepared: Prepared, *, batch_id: int, reads: str
) -> bool:
    """Return whether the whole batch is committed already; `reads` is a digest of what it covers.

    Raises `SinkError` if the checkpoint is older than the output, or the batch covers something else now.
    """
    if prepared.is_committed_in_part(batch_id):
        return False
    # A task without rows: it finds out, and `commit` compares what the batch covers.
    result = _as_one_task(client, options, prepared, (), batch_id)
    if result.replayed:
        driver.commit([result], batch_id, tasks=1, reads=reads)
    return result.replayed


def write_alone(
    client: Client,
    options: SinkOptions,
    driver: SinkDriver,
    prepared: Prepared,
    batches: Iterable[Any],
    *,
    batch_id: int,
    reads: str,
    acknowledged: Sequence[AcknowledgedRuns] = (),
) -> int:
    """Write pyarrow record batches as one micro-batch, in one transaction; return how many rows they had.

    Raises what a task and `SinkDriver.commit` raise; after an error the batch is not visible, unless it was just being
    committed; the next `prepare` finds out.
    """
    assert not prepared.is_committed_in_part(batch_id)
    result = _as_one_task(client, options, prepared, batches, batch_id)
    try:
        driver.commit([result], batch_id, tasks=1, reads=reads, acknowledged=acknowledged)
    except Exception:
        with suppress(ClientError):
            driver.abort([result])
        raise
    return result.rows


def _as_one_task(
    client: Client, options: SinkOptions, prepared: Prepared, batches: Iterable[Any], batch_id: int
) -> TaskResult:
    options = replace(options, transaction_scope=BATCH_SCOPE)
    return write_task(client, options, prepared, iter(batches), batch_id=batch_id, task=0, attempt=0)
