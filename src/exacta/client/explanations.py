"""Explain which transactions are open, whose they are, and what happened to a transactional id or a handle.

Exacta answers all of it from one state (ExplainTransactions). Another cluster is asked by Kafka's own calls, broker by
broker, which know no owner, no first offset and no reasons.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from exacta.client.deadline import Deadline
from exacta.client.handles import handle_name
from exacta.client.routing import Anyone, Client
from exacta.client.transactions import (
    NO_TIMEOUT_MS,
    ONGOING,
    TopicPartition,
    TransactionDescription,
    describe_transactions,
    list_transactions,
)
from exacta.protocol.kafka.messages.k17786_explain_transactions import ExplainTransactionsRequest

WHAT = ("fenced", "aborted", "forgotten")
ABORTED = WHAT[1]
CAUSES = (
    "its own producer asked",
    "a new instance initialised the transactional id",
    "time-out",
    "an operator wrote an abort marker, or named it by its id",
    "ended as one of a set",
    "idle for too long",
    "the broker's machine stopped, and may have lost writes of it",
    "a client that knew its TxnID ended it",
)


class Incident(NamedTuple):
    """An event that befell a producer id and epoch, its reason, and who had asked for it (empty: nobody)."""

    what: str
    cause: str
    at_ms: int
    producer_id: int
    producer_epoch: int
    client: str


class Acknowledged(NamedTuple):
    """The messages of a subscription of Apache Pulsar's that the open transaction has acknowledged.

    All messages before `before` are among them, unless that is None. `runs` are the first ones.
    """

    partition: TopicPartition
    subscription: str
    before: int | None
    run_count: int
    runs: tuple[tuple[int, int], ...]


class Staged(NamedTuple):
    """The number and size of records that an open transaction has written to a partition of a sidecar topic.

    They lie aside there until its commit.
    """

    partition: TopicPartition
    records: int
    size: int
    """The bytes of their batches."""


class Explanation(NamedTuple):
    """A transactional id; `state` is empty if it is unknown.

    Times are ms since 1970, or None if there is none or it is unknown.

    `partitions` are those that the open transaction holds, with its first offset in each. The offset is None if nothing
    is written yet, or if that is `staged`, or the cluster does not say.
    """

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    client: str = ""
    start_ms: int | None = None
    deadline_ms: int | None = None
    partitions: tuple[tuple[TopicPartition, int | None], ...] = ()
    groups: tuple[str, ...] = ()
    incidents: tuple[Incident, ...] = ()
    gives_reasons: bool = True
    is_handle: bool = False
    """True: it is a transaction that has no transactional id, and `transactional_id` is its name."""
    is_joint: bool = False
    """True: it is of a transactional id, and Pulsar's clients know it by its transaction id."""
    transaction_id: int | None = None
    acknowledged: tuple[Acknowledged, ...] = ()
    """The first subscriptions of which the open transaction has acknowledged messages."""
    subscription_count: int = 0
    staged: tuple[Staged, ...] = ()

    @property
    def is_open(self) -> bool:
        """Return whether a transaction is open."""
        return self.state == ONGOING


def explain(
    client: Client,
    transactional_ids: Sequence[str] | None = None,
    deadline: Deadline | None = None,
    *,
    handles: Sequence[int] = (),
) -> list[Explanation]:
    """Explain these transactional ids and handles, or all that is open; raises what `Client.call` raises.

    A handle of any other cluster than an Exacta is a transactional id of its name: only an Exacta has handles.
    """
    deadline = deadline or client.deadline()
    request = ExplainTransactionsRequest(
        transactional_ids=None if transactional_ids is None else list(transactional_ids), handles=list(handles)
    )
    if client.offers(Anyone(), request, deadline):
        reply = client.call(
            Anyone(),
            request,
            what="asking what transactions are open",
            codes=lambda reply: (reply.error_code,),
            deadline=deadline,
        )
        return [_from_exacta(each) for each in reply.transactions]
    if transactional_ids is None:
        transactional_ids = list_transactions(client, "", deadline=deadline)
    named = [*transactional_ids, *map(handle_name, handles)]
    found = describe_transactions(client, named, deadline)
    return [_from_kafka(each, found[each]) for each in named]


def _from_exacta(each: Any) -> Explanation:
    return Explanation(
        transactional_id=each.transactional_id,
        state=each.transaction_state,
        producer_id=each.producer_id,
        producer_epoch=each.producer_epoch,
        client=_client(each),
        start_ms=_or_none(each.start_ms),
        deadline_ms=_or_none(each.deadline_ms),
        partitions=tuple(
            (TopicPartition(topic.name, partition.partition_index), _or_none(partition.first_offset))
            for topic in each.topics
            for partition in topic.partitions
        ),
        groups=tuple(each.groups),
        is_handle=each.is_handle,
        is_joint=each.is_joint,
        transaction_id=_or_none(each.transaction_id),
        acknowledged=tuple(map(_acknowledged, each.subscriptions)),
        subscription_count=each.subscription_count,
        staged=tuple(
            Staged(
                TopicPartition(topic.name, partition.partition_index), partition.staged_records, partition.staged_bytes
            )
            for topic in each.topics
            for partition in topic.partitions
            if partition.staged_records
        ),
        incidents=tuple(
            Incident(
                _of(WHAT, incident.what),
                _of(CAUSES, incident.cause),
                incident.at_ms,
                incident.producer_id,
                incident.producer_epoch,
                _client(incident),
            )
            for incident in each.incidents
        ),
    )


def _acknowledged(found: Any) -> Acknowledged:
    return Acknowledged(
        TopicPartition(found.topic_name, found.partition_index),
        found.subscription,
        _or_none(found.before_offset),
        found.run_count,
        tuple((run.first_offset, run.last_offset) for run in found.runs),
    )


def _from_kafka(transactional_id: str, found: TransactionDescription | None) -> Explanation:
    if found is None:
        return Explanation(transactional_id, "", -1, -1, gives_reasons=False)
    limited = found.start_ms >= 0 and found.timeout_ms != NO_TIMEOUT_MS
    return Explanation(
        transactional_id=transactional_id,
        state=found.state,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        start_ms=_or_none(found.start_ms),
        deadline_ms=found.start_ms + found.timeout_ms if limited else None,
        partitions=tuple((partition, None) for partition in sorted(found.partitions)),
        gives_reasons=False,
    )


def _or_none(number: int) -> int | None:
    return None if number < 0 else number


def _of(names: Sequence[str], number: int) -> str:
    """Return a name; a newer broker may have more of them."""
    return names[number] if 0 <= number < len(names) else f"reason {number}"


def _client(each: Any) -> str:
    if not each.client_id and not each.client_host:
        return ""
    return f"client '{each.client_id}' at {each.client_host.lstrip('/')}"
