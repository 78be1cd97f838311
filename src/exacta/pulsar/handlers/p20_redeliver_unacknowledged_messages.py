"""REDELIVER_UNACKNOWLEDGED_MESSAGES gives messages back: these, or all that a consumer has."""

from collections.abc import Sequence

from exacta.core.commands import Redeliver
from exacta.core.ids import Offset
from exacta.front.broker import Broker
from exacta.front.pieces import by_pieces
from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandRedeliverUnacknowledgedMessages,
    MessageIdData,
)
from exacta.pulsar.at_follower import NOT_OPEN
from exacta.pulsar.consumers import Consumer
from exacta.pulsar.context import Handler, PulsarRequest, no_answer
from exacta.pulsar.needs import OPEN_TO_ALL
from exacta.pulsar.provisional_ids import resolve

NEEDS = OPEN_TO_ALL


def handle(broker: Broker, command: CommandRedeliverUnacknowledgedMessages, request: PulsarRequest) -> None:
    """Take the entries back; nobody waits for an answer. From now on messages say the epoch that the client says."""
    consumer = request.connection.consumers.get(command.consumer_id)
    if consumer is not None:
        if command.HasField("consumer_epoch"):
            consumer.epoch = max(consumer.epoch or 0, command.consumer_epoch)
        _redeliver(broker, command, request, consumer)
    else:
        request.end()


def _redeliver(
    broker: Broker, command: CommandRedeliverUnacknowledgedMessages, request: PulsarRequest, consumer: Consumer
) -> None:
    entries: dict[Offset, None] = {}

    def read(ids: Sequence[MessageIdData]) -> None:
        resolve(broker.engine.advice, consumer.partition_id, ids)
        entries.update((Offset(each.entry_id), None) for each in ids if each.ledger_id == consumer.partition_id)

    def redeliver() -> None:
        asked = Redeliver(
            **consumer.where,
            consumer_id=consumer.consumer_id,
            entries=tuple(entries) if command.message_ids else None,
        )
        broker.ask(request, asked, lambda answer: request.end())

    by_pieces(request.in_steps, command.message_ids, read, redeliver)


HANDLER = Handler(
    type=BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES,
    needs=NEEDS,
    at_follower=NOT_OPEN,
    handle=handle,
    refused=no_answer,
)
