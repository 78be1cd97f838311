"""Acknowledgements of Apache Pulsar's messages in a joint transaction, on an Exacta (decision 0040).

The module owns how messages are named, the request, and what its refusals mean to the one who asks. A message is named
by its id, which any client tells that has received the message: it need not know transactions. The client for Python
knows none.

Theory of operation: an id names a partition of the log (as Pulsar's ledger), an entry by the offset of its first
message, and an index in the entry's batch. So the messages of a partition are runs of offsets.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from exacta.client.deadline import Deadline
from exacta.client.errors import ClientError
from exacta.client.handles import handle_name
from exacta.client.routing import Client, Controller
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17791_acknowledge_messages import (
    AcknowledgeMessagesRequest,
    PartitionToAcknowledge,
    Run,
    SubscriptionToAcknowledge,
)

_LEDGER, _ENTRY, _BATCH_INDEX, _FIRST_CHUNK = 1, 2, 4, 7
"""The fields of a message id (`MessageIdData` in PulsarApi.proto)."""
_VARINT, _BYTES = 0, 2
_NO_MESSAGE = 2**63 - 1
"""This number and those above it stand for the first message and for the last one, in either field."""


class MessageId(Protocol):
    """The id of a message, as Pulsar's client for Python has it."""

    def serialize(self) -> bytes:
        """Return the id as clients of any language exchange it."""


class ClientMessage(Protocol):
    """A message, as Pulsar's client for Python has it."""

    def message_id(self) -> MessageId:
        """Return its id."""


Acknowledgement = Mapping[str, Iterable[ClientMessage | MessageId]]
"""The messages that are acknowledged, by the names of the subscriptions that have delivered them."""


class NotAcknowledged(ClientError):
    """Messages cannot be acknowledged. The message is one sentence that says why."""


class AcknowledgedRuns(Struct, frozen=True):
    """The messages of one partition that a subscription acknowledges, as runs of offsets; both ends belong to a run."""

    subscription: str
    partition_id: int
    runs: tuple[tuple[int, int], ...]


def named(messages: Acknowledgement) -> tuple[AcknowledgedRuns, ...]:
    """Return the messages as a request names them; one that is named twice counts once.

    Raises TypeError for what is no message, and `NotAcknowledged` for a message in chunks: its id does not tell where
    all of its chunks are.
    """
    if not isinstance(messages, Mapping):
        raise TypeError("messages are acknowledged by the names of their subscriptions: {'billing': [message, ...]}")
    offsets: dict[tuple[str, int], set[int]] = {}
    for subscription, several in messages.items():
        for each in several:
            partition_id, offset = _place(each)
            offsets.setdefault((subscription, partition_id), set()).add(offset)
    return tuple(AcknowledgedRuns(*key, _runs(sorted(found))) for key, found in offsets.items())


def can_acknowledge(client: Client) -> bool:
    """Return whether the cluster is an Exacta that acknowledges Pulsar messages in transactions."""
    return client.offers(Controller(), AcknowledgeMessagesRequest())


def acknowledge(
    client: Client, transaction_id: int, messages: Sequence[AcknowledgedRuns], *, deadline: Deadline | None = None
) -> None:
    """Acknowledge messages in a joint transaction, or a handle; a repeat in the same transaction changes nothing.

    Raises `NotAcknowledged`, and what `Client.call` raises. Then some of the messages may be acknowledged, and the
    transaction must be aborted.
    """
    by_subscription: dict[str, list[PartitionToAcknowledge]] = {}
    for each in messages:
        runs = [Run(first_offset=first, last_offset=last) for first, last in each.runs]
        partition = PartitionToAcknowledge(partition_id=each.partition_id, runs=runs)
        by_subscription.setdefault(each.subscription, []).append(partition)
    reply = client.call(
        Controller(),
        AcknowledgeMessagesRequest(
            transaction_id=transaction_id,
            subscriptions=[
                SubscriptionToAcknowledge(name=name, partitions=partitions)
                for name, partitions in by_subscription.items()
            ],
        ),
        what=f"acknowledging messages in {handle_name(transaction_id)}",
        codes=lambda reply: (reply.error_code, *(code for _, _, code in _results(reply) if code not in _REFUSALS)),
        deadline=deadline,
    )
    for name, partition_id, code in _results(reply):
        if code:
            raise NotAcknowledged(
                f"messages of subscription '{name}' with ids ({partition_id}, ...) cannot be acknowledged: "
                + _REFUSALS[code]
            )


_REFUSALS: Mapping[int, str] = {
    ErrorCode.INVALID_RECORD_STATE: (
        "one of them is acknowledged already, or in another open transaction, because another consumer has got it, too"
    ),
    ErrorCode.RESOURCE_NOT_FOUND: (
        "the cluster has no such subscription, or no such topic: was it deleted, or were the messages received from "
        "another cluster?"
    ),
    ErrorCode.OFFSET_OUT_OF_RANGE: "there are no such messages: were they received from another cluster?",
    ErrorCode.INVALID_REQUEST: "it is a reader's, and no transaction acknowledges for readers",
    ErrorCode.POLICY_VIOLATION: (
        "they are too many for one transaction, or too many are acknowledged in open transactions; runs of messages "
        "that lie behind each other count as one"
    ),
}


def _results(reply: Any) -> Iterable[tuple[str, int, int]]:
    return (
        (subscription.name, each.partition_id, each.error_code)
        for subscription in reply.subscriptions
        for each in subscription.partitions
    )


def _place(message: ClientMessage | MessageId) -> tuple[int, int]:
    """Return the partition and the offset of a message."""
    try:
        fields = _fields((message.message_id() if hasattr(message, "message_id") else message).serialize())
    except AttributeError:
        raise TypeError(f"{message!r} is neither a message of Pulsar's client for Python nor its id") from None
    partition_id, entry = fields.get(_LEDGER, _NO_MESSAGE), fields.get(_ENTRY, _NO_MESSAGE)
    if max(partition_id, entry) >= _NO_MESSAGE:
        raise TypeError(f"{message!r} is the id of no message")
    if _FIRST_CHUNK in fields:
        raise NotAcknowledged(
            f"the message with the id ({partition_id}, {entry}) came in chunks, and only its consumer knows them all: "
            "it cannot be acknowledged in a transaction"
        )
    index = fields.get(_BATCH_INDEX, 0)
    return partition_id, entry + (index if index < _NO_MESSAGE else 0)  # a negative one: it is in no batch


def _fields(data: bytes) -> dict[int, int]:
    """Return the numbers in a message of protobuf by their fields; of a field that has bytes, how many."""
    fields: dict[int, int] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte, at = data[at], at + 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        field, kind = divmod(number(), 8)
        fields[field] = number()
        if kind == _BYTES:
            at += fields[field]
        elif kind != _VARINT:
            break
    return fields


def _runs(offsets: Sequence[int]) -> tuple[tuple[int, int], ...]:
    runs: list[tuple[int, int]] = []
    for offset in offsets:
        if runs and runs[-1][1] == offset - 1:
            runs[-1] = (runs[-1][0], offset)
        else:
            runs.append((offset, offset))
    return tuple(runs)
