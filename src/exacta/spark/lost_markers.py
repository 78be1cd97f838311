"""A query's transactions whose markers a broker has lost, ended once more as they had ended.

Owns when a marker counts as lost, and how its transaction had ended. `client/lost_markers.py` says how that happens,
and what helps.

Theory of operation. A marker is missed where something that must be final is not: once a driver has taken its id over,
no transaction of an older one is open, so the decision record can only be pending for want of a marker; and so can the
replay marker of a task whose transaction the coordinator calls committed. Brokers before Apache Kafka 4.0 make offsets
visible a moment after the marker, so a moment is waited for.

How a transaction of the driver had ended, its coordinator knows until the id is taken over, by a driver that may die
before it has repaired anything. So that it committed is *noted* first, in a group of its own, with the number of the
record before it: once the missing record is there, the note is outdated by itself. A note counts more than what the
coordinator says then, which may be of a repair that was interrupted, and is to be completed.

What is *not* found are the lost markers of a transaction that was aborted (but for a decision's), and of one whose
group had its marker and whose rows had not. Topics with replicas lose none.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from exacta.client.lost_markers import end_again, partitions_held_open
from exacta.client.routing import Client
from exacta.client.transactions import Producer, describe_transaction, end_transaction
from exacta.spark.incarnations import incarnation_of
from exacta.spark.names import QueryNames, shown_ids
from exacta.spark.query_records import Heads, QueryRecords

_log = logging.getLogger("exacta.spark")

_A_MOMENT_MS = 2_000

#: A transaction's state -> whether it is committed, or will be once its id is taken over. Of others nobody knows.
_COMMITTED = {
    "Ongoing": False,
    "PrepareAbort": False,
    "CompleteAbort": False,
    "PrepareEpochFence": False,
    "PrepareCommit": True,
    "CompleteCommit": True,
}


def how_it_ended(client: Client, records: QueryRecords, names: QueryNames, heads: Heads) -> bool | None:
    """Return whether the driver's last transaction is committed, or will be; None where it is not missed, or not known.

    To be asked before the driver's id is taken over.
    """
    if not heads.pending:
        return None
    state = describe_transaction(client, names.driver)
    if state is None:
        return None
    if records.noted_as_committed(heads, state.producer_id):
        if state.is_open:  # a repair that was interrupted; taking the id over would abort it
            end_transaction(client, incarnation_of(names.driver, state), commit=True)
        return True
    committed = _COMMITTED.get(state.state)
    if committed:
        records.note_as_committed(heads, state.producer_id)
    return committed


def end_drivers_again(client: Client, records: QueryRecords, driver: Producer, *, commit: bool | None) -> None:
    """Write the lost markers of a driver's last transaction, after its id was taken over; `commit`: how it ended."""
    if commit is None:
        return
    groups = records.still_pending(list(records.decision_groups()), _A_MOMENT_MS)
    if groups:
        _end_again(client, {driver: groups}, commit=commit)


def end_tasks_again(client: Client, records: QueryRecords, names: QueryNames, committed: dict[int, Producer]) -> None:
    """Write the lost markers of tasks' transactions, which their coordinator calls committed."""
    groups = {names.marker_group(task): producer for task, producer in committed.items()}
    lost = records.still_pending(groups, _A_MOMENT_MS)
    if lost:
        _end_again(client, {groups[group]: [group] for group in lost}, commit=True)


def _end_again(client: Client, lost: dict[Producer, Collection[str]], *, commit: bool) -> None:
    held = partitions_held_open(client, {producer.producer_id for producer in lost})
    for producer, groups in lost.items():
        end_again(client, producer, groups=groups, partitions=held.get(producer.producer_id, ()), commit=commit)
    _log.warning(
        "%s lost the markers of transactions that it had %s (a broker died just then, and without replicas): written "
        "once more for %s",
        client.bootstrap,
        "committed" if commit else "aborted",
        shown_ids(sorted(producer.transactional_id for producer in lost)),
    )
