"""UNSUBSCRIBE deletes a subscription, on behalf of its only consumer."""

from exacta.core.commands import Unsubscribe
from exacta.core.rejections import Rejection
from exacta.front.broker import Broker
from exacta.ports.log import Answer
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, CommandSuccess, CommandUnsubscribe, ServerError
from exacta.pulsar.at_follower import NOT_READY
from exacta.pulsar.context import Handler, PulsarRequest, plain_error
from exacta.pulsar.needs import OPEN_TO_ALL

NEEDS = OPEN_TO_ALL


def handle(broker: Broker, command: CommandUnsubscribe, request: PulsarRequest) -> None:
    """Delete the subscription with its acknowledgements; with `force` also while others are connected."""
    consumer = request.open_consumer(command.consumer_id)
    if consumer is None:
        return

    def done(answer: Answer) -> None:
        if answer is Rejection.SUBSCRIPTION_BUSY:
            request.refuse(ServerError.ConsumerBusy, "other consumers are connected")
        elif isinstance(answer, Rejection):
            request.reject(answer)
        else:
            request.connection.consumers.forget(consumer)  # so that it is not told that it is closed
            request.reply(CommandSuccess(request_id=command.request_id))

    consumer_id = None if command.force else consumer.consumer_id
    broker.ask(request, Unsubscribe(**consumer.where, consumer_id=consumer_id), done)


HANDLER = Handler(type=BaseCommand.UNSUBSCRIBE, needs=NEEDS, at_follower=NOT_READY, handle=handle, refused=plain_error)
