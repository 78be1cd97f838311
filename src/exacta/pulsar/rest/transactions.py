"""Transactions: what an open one has written, acknowledged and announced.

A transaction that has ended is not found, as in Apache Pulsar, although its outcome is remembered for a time: clients
take 404 for its end.
"""

from functools import partial
from typing import Any

from exacta.core.ids import Offset, TransactionId
from exacta.core.queries.open_transactions import InPartition, OpenTransactionFacts, describe_open_transaction
from exacta.front.broker import Broker
from exacta.front.transaction_rights import lacking_for
from exacta.ports.authorizer import Operation
from exacta.protocol.pulsar.messages_pb2 import ServerError
from exacta.protocol.pulsar.topic_names import InvalidTopicName, TopicName, parse_topic_name
from exacta.pulsar.announced import Names
from exacta.pulsar.needs import Need, Needs, lacking
from exacta.pulsar.rest.request import NOT_FOUND, RestRequest
from exacta.pulsar.topic_names import pulsar_name
from exacta.pulsar.transactions import COORDINATOR_NUMBER

Metadata = dict[str, Any]

LONGEST_NUMBER = 20
"""The digits of 2**64 - 1."""


_SEES: Needs[Metadata] = (
    Need(Operation.DESCRIBE, lambda told: [*told["producedPartitions"], *told["ackedPartitions"]]),
)


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
    lack = lacking_for(broker, request, transaction_id, only_looks=True)
    if lack is not None:
        request.refuse(ServerError.AuthorizationError, lack)
        return

    def answer(found: OpenTransactionFacts | None) -> None:
        if found is None:
            request.refuse_with(NOT_FOUND, f"The transaction with this txdID `{_named(transaction_id)}` not found ")
            return
        described = _described(transaction_id, found, request.shared.announced.of(transaction_id))
        lack = lacking(broker, request, _SEES, described)
        if lack is not None:
            request.refuse(ServerError.AuthorizationError, lack)
        else:
            request.reply_json(described)

    broker.read(request, partial(describe_open_transaction, transaction_id=transaction_id), answer)


def _number(text: str) -> int | None:
    """Return a number of a path, or None if no id can have it. Python itself refuses thousands of digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None


def _named(transaction_id: TransactionId) -> str:
    return f"({COORDINATOR_NUMBER},{transaction_id})"


def _described(transaction_id: TransactionId, transaction: OpenTransactionFacts, names: Names) -> Metadata:
    return {
        "txnId": _named(transaction_id),
        "status": "OPEN",
        "openTimestamp": transaction.start_ms,
        "timeoutAt": transaction.timeout_ms,  # a time-out, and no time, in Apache Pulsar as well
        "producedPartitions": _produced(transaction, names),
        "ackedPartitions": _acknowledged(transaction, names),
    }


def _produced(transaction: OpenTransactionFacts, names: Names) -> Metadata:
    """Return the partitions that it writes to. What was announced has the name by which it was announced."""
    told = {_parsed(name): name for name in sorted(names.topics)}
    found: Metadata = {name: {"aborted": False} for name in told.values()}
    for each in transaction.written:
        described: Metadata = {"aborted": False}
        if each.first_offset is not None:
            described["startPosition"] = _position(each.partition, each.first_offset)
        found[_name_of(each.partition, told)] = described
    return found


def _acknowledged(transaction: OpenTransactionFacts, names: Names) -> Metadata:
    told = {_parsed(topic): topic for topic, _ in sorted(names.subscriptions)}
    found: Metadata = {}
    for topic, name in sorted(names.subscriptions):
        found.setdefault(told[_parsed(topic)], {})[name] = {}
    for each in transaction.acknowledged:
        described: Metadata = {}
        if each.before is not None:
            described["cumulativeAckPosition"] = _position(each.partition, Offset(each.before - 1))
        found.setdefault(_name_of(each.partition, told), {})[each.name] = described
    return found


def _position(partition: InPartition, offset: Offset) -> str:
    """Return a message as Pulsar's positions name it: ledger and entry (decision 0032)."""
    return f"{partition.partition_id}:{offset}"


def _parsed(name: str) -> TopicName | str:
    """Return the topic of a name that was announced; names of all forms are one, and what is no name is itself."""
    try:
        return parse_topic_name(name)
    except InvalidTopicName:
        return name


def _name_of(partition: InPartition, told: dict[TopicName | str, str]) -> str:
    """Return the name of a partition: the one that was announced, or the full one."""
    whole = pulsar_name(partition.topic)
    one = TopicName(
        tenant=whole.tenant, namespace=whole.namespace, local_name=whole.local_name, partition=partition.index
    )
    names = (one, whole) if partition.is_one_of_several else (whole, one)
    return next((told[name] for name in names if name in told), str(names[0]))
