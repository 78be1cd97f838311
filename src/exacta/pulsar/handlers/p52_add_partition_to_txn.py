"""ADD_PARTITION_TO_TXN says what a transaction will write to. It is checked; the writes themselves register it."""

from google.protobuf.message import Message

from exacta.core.ids import TransactionId
from exacta.front.broker import Broker
from exacta.ports.authorizer import Operation
from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandAddPartitionToTxn,
    CommandAddPartitionToTxnResponse,
    ServerError,
)
from exacta.protocol.pulsar.transaction_ids import txn_id
from exacta.pulsar.at_follower import NO_COORDINATOR
from exacta.pulsar.context import Handler, PulsarRequest
from exacta.pulsar.needs import Need
from exacta.pulsar.transactions import named_again, when_open


def _topics(command: CommandAddPartitionToTxn) -> list[str]:
    return list(command.partitions)


NEEDS = (Need(Operation.WRITE, _topics),)


def handle(broker: Broker, command: CommandAddPartitionToTxn, request: PulsarRequest) -> None:
    """Answer with success if the transaction is open and the topics are there."""

    def is_open(transaction_id: TransactionId) -> None:
        request.shared.announced.note_topics(transaction_id, command.partitions)
        request.reply(CommandAddPartitionToTxnResponse(**named_again(command)))

    when_open(broker, request, txn_id(command), _topics(command), is_open)


def refused(command: CommandAddPartitionToTxn, error: ServerError, text: str) -> Message:
    """Refuse to add them."""
    return CommandAddPartitionToTxnResponse(
        **named_again(command),
        error=error,
        message=text,
    )


HANDLER = Handler(
    type=BaseCommand.ADD_PARTITION_TO_TXN, needs=NEEDS, at_follower=NO_COORDINATOR, handle=handle, refused=refused
)
