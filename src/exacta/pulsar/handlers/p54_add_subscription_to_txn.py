"""ADD_SUBSCRIPTION_TO_TXN names subscriptions whose messages a transaction will acknowledge. It is checked only."""

from google.protobuf.message import Message

from exacta.core.ids import TransactionId
from exacta.front.broker import Broker
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandAddSubscriptionToTxn,
    CommandAddSubscriptionToTxnResponse,
    ServerError,
)
from exacta.protocol.pulsar.transaction_ids import txn_id
from exacta.pulsar.at_follower import NO_COORDINATOR
from exacta.pulsar.context import Handler, PulsarRequest
from exacta.pulsar.needs import Need
from exacta.pulsar.transactions import named_again, when_open


def _topics(command: CommandAddSubscriptionToTxn) -> list[str]:
    return [each.topic for each in command.subscription]


def _subscriptions(command: CommandAddSubscriptionToTxn) -> list[str]:
    return [each.subscription for each in command.subscription]


NEEDS = (Need(Operation.READ, _topics), Need(Operation.READ, _subscriptions, ResourceKind.GROUP))


def handle(broker: Broker, command: CommandAddSubscriptionToTxn, request: PulsarRequest) -> None:
    """Answer with success if the transaction is open and the topics are there."""

    def is_open(transaction_id: TransactionId) -> None:
        pairs = ((each.topic, each.subscription) for each in command.subscription)
        request.shared.announced.note_subscriptions(transaction_id, pairs)
        request.reply(CommandAddSubscriptionToTxnResponse(**named_again(command)))

    when_open(broker, request, txn_id(command), _topics(command), is_open)


def refused(command: CommandAddSubscriptionToTxn, error: ServerError, text: str) -> Message:
    """Refuse to add them."""
    return CommandAddSubscriptionToTxnResponse(
        **named_again(command),
        error=error,
        message=text,
    )


HANDLER = Handler(
    type=BaseCommand.ADD_SUBSCRIPTION_TO_TXN, needs=NEEDS, at_follower=NO_COORDINATOR, handle=handle, refused=refused
)
