"""Deciding a batch and ending its transactions in one durable step, where the broker can do that (Exacta can).

This module owns that way of committing, and what else ends in that step: acknowledgements of a work queue's messages
(decision 0040). `protocol.py` owns the other way, and when a batch is committed.

Theory of operation. The decision record is put into the driver's own transaction, as ever. Then one request ends that
and the tasks' transactions, all or none: every one of them must be open, its producer the current one, and hold the
partitions that its task wrote to. So decision and end are one step. There is no moment after which a part of the batch
can time out, and nothing to look at before (the check that the transactions are open is part of the step). A reader
sees a part of the batch only where an older transaction is open in the other part's partitions: another writer's, or
the one of an attempt which lost, until it is swept.

Acknowledgements lie in the driver's own transaction. It is joined by them when it holds the decision record already.
From then on it has a TxnID, too, and the client that commits it has decided the batch, which the next run finishes.
They are not for the other way of committing, in which all of a decided batch may time out: it would be run again
without the messages.

A lost answer is asked for again. Where the repeat is refused, something may have gone on since the first one succeeded;
so the driver's transaction is looked at. Unless acknowledgements have joined it, nobody but this driver commits it: it
is of the same step.
"""

from collections.abc import Sequence

from exacta.client.acknowledging import AcknowledgedRuns, acknowledge
from exacta.client.errors import KafkaError
from exacta.client.joint import NotJoined, join
from exacta.client.routing import Client
from exacta.client.transaction_set import can_end_at_once, end_transactions_at_once
from exacta.client.transactions import COMPLETE_COMMIT, Producer, describe_transaction
from exacta.protocol.kafka.errors import ErrorCode
from exacta.spark.sink.decision import Decision
from exacta.spark.sink.errors import SinkError
from exacta.spark.sink.incarnations import holds
from exacta.spark.sink.messages import Written
from exacta.spark.sink.query_records import QueryRecords

_COMMITTED_BY_ITS_ID = (
    "batch {} is decided, and maybe not all of it is visible yet, because someone else has committed its transaction "
    "by the TxnID: start the query again"
)
_NOT_OPEN = frozenset({ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND})


def decide_and_end(
    client: Client,
    records: QueryRecords,
    driver: Producer,
    decision: Decision,
    written: Written,
    acknowledged: Sequence[AcknowledgedRuns] = (),
) -> dict[Producer, KafkaError] | None:
    """Commit all of a batch, and with it acknowledge messages; return the producers that stood in the way.

    If there is one, nothing of the batch is visible.

    `written` are the tasks' transactions and the driver's, which may hold rows itself.

    Returns None if the broker cannot do that, or not for this many: then nothing is decided, though the record may lie
    in the driver's transaction. Raises a fenced `KafkaError` if there is a newer driver. It is also raised if the
    broker's machine stopped, and then the batch may be committed. Raises `NotAcknowledged`: then nothing is decided.
    Raises `SinkError`: somebody else has decided it.
    """
    if not can_end_at_once(client, driver):
        return None
    records.put_decision(driver, decision)
    if acknowledged and (ended := _acknowledge(client, driver, acknowledged)) is not None:
        return {driver: ended}
    try:
        refused = end_transactions_at_once(client, written, commit=True)
    except KafkaError as error:
        if error.code == ErrorCode.POLICY_VIOLATION:
            return None
        raise
    if driver in refused and refused[driver].fenced:
        raise refused[driver]
    if refused and _has_committed(client, driver):
        if acknowledged:
            raise SinkError(_COMMITTED_BY_ITS_ID.format(decision.batch_id))
        return {}
    return refused


def _acknowledge(client: Client, driver: Producer, messages: Sequence[AcknowledgedRuns]) -> KafkaError | None:
    """Let acknowledgements join the driver's transaction; return the error if somebody has ended that."""
    try:
        acknowledge(client, join(client, driver.transactional_id, producer=driver), messages)
    except NotJoined as error:
        return KafkaError(ErrorCode.INVALID_TXN_STATE, str(error))
    except KafkaError as error:
        if error.code not in _NOT_OPEN:
            raise
        return error
    return None


def _has_committed(client: Client, driver: Producer) -> bool:
    found = describe_transaction(client, driver.transactional_id)
    return found is not None and holds(driver, found) and found.state == COMPLETE_COMMIT
