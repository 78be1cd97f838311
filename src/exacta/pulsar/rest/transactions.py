"""Transactions: what an open one has written, acknowledged and announced.

A transaction that has ended is not found, as in Apache Pulsar, although its outcome is remembered for a time: clients
take 404 for its end.
"""

from typing import Any

from exacta.core.ids import Offset, TransactionId
from exacta.core.state.partition import Partition
from exacta.core.state.state import State
from exacta.core.state.transaction import Transaction, handle_name
from exacta.front.broker import Broker
from exacta.protocol.pulsar.topic_names import InvalidTopicName, TopicName, parse_topic_name
from exacta.pulsar.announced import Names
from exacta.pulsar.rest.request import NOT_FOUND, RestRequest
from exacta.pulsar.topic_names import pulsar_name
from exacta.pulsar.transactions import COORDINATOR_NUMBER

Metadata = dict[str, Any]

LONGEST_NUMBER = 20
"""The digits of 2**64 - 1."""


def metadata(broker: Broker, request: RestRequest) -> None:
    """Describe an open transaction from one state."""
    most, least = (_number(request.http.path_params[name]) for name in ("most", "least"))
    if most is None or least is None:
        request.refuse_with(NOT_FOUND, "Not Found")
        return
    if most != COORDINATOR_NUMBER:
        request.refuse_with(NOT_FOUND, f"Transaction coordinator with id {most} not found!")
        return
    transaction_id = TransactionId(least)

    def view(state: State, now_ms: int) -> Metadata | None:
        transaction = state.transactions.get(transaction_id)
        if transaction is None or not transaction.is_known_by_id:
            return None
        return _described(state, transaction, request.shared.announced.of(transaction_id))

    def answer(found: Metadata | None) -> None:
        if found is None:
            request.refuse_with(NOT_FOUND, f"The transaction with this txdID `{_named(transaction_id)}` not found ")
        else:
            request.reply_json(found)

    broker.read(request, view, answer)


def _number(text: str) -> int | None:
    """Return a number of a path, or None if no id can have it. Python itself refuses thousands of digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None


def _named(transaction_id: TransactionId) -> str:
    return handle_name(transaction_id).removeprefix("TxnID")


def _described(state: State, transaction: Transaction, names: Names) -> Metadata:
    return {
        "txnId": _named(transaction.transaction_id),
        "status": "OPEN",
        "openTimestamp": transaction.start_ms,
        "timeoutAt": transaction.timeout_ms,  # a time-out, and no time, in Apache Pulsar as well
        "producedPartitions": _produced(state, transaction, names),
        "ackedPartitions": _acknowledged(state, transaction, names),
    }


def _produced(state: State, transaction: Transaction, names: Names) -> Metadata:
    """Return the partitions that it writes to. What was announced has the name by which it was announced."""
    told = {_parsed(name): name for name in sorted(names.topics)}
    found: Metadata = {name: {"aborted": False} for name in told.values()}
    for partition_id in sorted(transaction.partitions):
        partition = state.partitions.get(partition_id)
        if partition is None:
            continue
        first_offsets = [
            partition.open_transactions[each]
            for each in transaction.producer_ids
            if each in partition.open_transactions
        ]
        if first_offsets:
            name = _name_of(state, partition, told)
            found[name] = {"startPosition": _position(partition, min(first_offsets)), "aborted": False}
        elif any(each in partition.staged for each in transaction.producer_ids):
            found[_name_of(state, partition, told)] = {"aborted": False}  # it has no position yet
    return found


def _acknowledged(state: State, transaction: Transaction, names: Names) -> Metadata:
    told = {_parsed(topic): topic for topic, _ in sorted(names.subscriptions)}
    found: Metadata = {}
    for topic, name in sorted(names.subscriptions):
        found.setdefault(told[_parsed(topic)], {})[name] = {}
    for partition_id, name in sorted(transaction.subscriptions):
        partition = state.partitions.get(partition_id)
        if partition is None:
            continue
        described: Metadata = {}
        subscription = partition.subscriptions.get(name)
        cumulative = None if subscription is None else subscription.cumulative
        if cumulative is not None and cumulative.transaction_id == transaction.transaction_id:
            described["cumulativeAckPosition"] = _position(partition, Offset(cumulative.before - 1))
        found.setdefault(_name_of(state, partition, told), {})[name] = described
    return found


def _position(partition: Partition, offset: Offset) -> str:
    """Return a message as Pulsar's positions name it: ledger and entry (decision 0032)."""
    return f"{partition.partition_id}:{offset}"


def _parsed(name: str) -> TopicName | str:
    """Return the topic of a name that was announced; names of all forms are one, and what is no name is itself."""
    try:
        return parse_topic_name(name)
    except InvalidTopicName:
        return name


def _name_of(state: State, partition: Partition, told: dict[TopicName | str, str]) -> str:
    """Return the name of a partition: the one that was announced, or the full one."""
    whole = pulsar_name(partition.topic)
    topic = state.topics.get(partition.topic)
    is_partitioned = topic is not None and topic.partition_count > 1
    one = TopicName(
        tenant=whole.tenant, namespace=whole.namespace, local_name=whole.local_name, partition=partition.index
    )
    names = (one, whole) if is_partitioned else (whole, one)
    return next((told[name] for name in names if name in told), str(names[0]))
