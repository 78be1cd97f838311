"""Pulsar's ids of transactions: the coordinator's number, which is 0, and the transaction's id in the core."""

from typing import Final, Protocol, TypedDict

from exacta.core.ids import TransactionId
from exacta.protocol.pulsar.messages_pb2 import CommandAck, CommandSend

COORDINATOR_NUMBER: Final = 0
"""There is one coordinator."""


class InTransaction(Protocol):
    """A command that names a transaction."""

    txnid_most_bits: int
    txnid_least_bits: int


class TransactionRequest(InTransaction, Protocol):
    """A command that names a transaction, and whose client waits for the answer to this request."""

    request_id: int


class NamedAgain(TypedDict):
    """The fields by which an answer names its request and its transaction."""

    request_id: int
    txnid_most_bits: int
    txnid_least_bits: int


def transaction_of(command: InTransaction) -> TransactionId | None:
    """Return the transaction that a command names, or None if it is not of this coordinator."""
    if command.txnid_most_bits != COORDINATOR_NUMBER:
        return None
    return TransactionId(command.txnid_least_bits)


def name_of(command: InTransaction) -> str:
    """Return the name of the transaction of a command, as Pulsar's tools write it."""
    return f"TxnID({command.txnid_most_bits},{command.txnid_least_bits})"


def named_again(command: TransactionRequest) -> NamedAgain:
    """Return the fields by which an answer names its request and its transaction: as the command has them."""
    return {
        "request_id": command.request_id,
        "txnid_most_bits": command.txnid_most_bits,
        "txnid_least_bits": command.txnid_least_bits,
    }


def is_transactional(command: CommandSend | CommandAck) -> bool:
    """Return whether a SEND or an ACK belongs to a transaction.

    Only the command says so: the Go client leaves it out of the message's own metadata, or writes another one there.
    """
    return command.HasField("txnid_least_bits") or command.HasField("txnid_most_bits")
