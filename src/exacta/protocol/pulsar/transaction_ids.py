"""Ids of transactions as Pulsar's clients know them: the number of a coordinator, and a number that it has given."""

from typing import Protocol

from msgspec import Struct

from exacta.protocol.pulsar.messages_pb2 import CommandAck, CommandSend


class InTransaction(Protocol):
    """A command that names a transaction."""

    txnid_most_bits: int
    txnid_least_bits: int


class TxnId(Struct, frozen=True, gc=False):
    """The id of a transaction: its coordinator's number, and its own."""

    most_bits: int
    least_bits: int

    def __str__(self) -> str:
        """Return the id as Pulsar's tools write it."""
        return f"TxnID({self.most_bits},{self.least_bits})"


def txn_id(command: InTransaction) -> TxnId:
    """Return the id of the transaction that a command names."""
    return TxnId(command.txnid_most_bits, command.txnid_least_bits)


def txn_id_of_part(command: CommandSend | CommandAck) -> TxnId | None:
    """Return the id of the transaction that a SEND or an ACK belongs to; None: it belongs to none.

    Only the command says so: the Go client leaves it out of the message's own metadata, or writes another one there.
    """
    if command.HasField("txnid_least_bits") or command.HasField("txnid_most_bits"):
        return txn_id(command)
    return None
