"""Pulsar's ids of transactions: the coordinator's number, which is 0, and the transaction's id in the core."""

from typing import Any, Final

from exacta.core.ids import TransactionId

COORDINATOR_NUMBER: Final = 0
"""There is one coordinator."""


def transaction_of(command: Any) -> TransactionId | None:
    """Return the transaction that a command names; None: it is none of this coordinator's."""
    if command.txnid_most_bits != COORDINATOR_NUMBER:
        return None
    return TransactionId(command.txnid_least_bits)


def named_again(command: Any) -> dict[str, Any]:
    """Return the fields by which an answer names its request and its transaction: as the command has them."""
    return {
        "request_id": command.request_id,
        "txnid_most_bits": command.txnid_most_bits,
        "txnid_least_bits": command.txnid_least_bits,
    }


def is_transactional(command: Any) -> bool:
    """Return whether a SEND or an ACK belongs to a transaction.

    Only the command says so: the Go client leaves it out of the message's own metadata, or writes another one there.
    """
    return bool(command.HasField("txnid_least_bits") or command.HasField("txnid_most_bits"))
