"""The client id of a command, for quotas: the name of the producer or consumer that it is for (decision 0071)."""

from collections.abc import Mapping

from exacta.protocol.pulsar.messages_pb2 import BaseCommand
from exacta.pulsar.consumers import Consumer, Consumers
from exacta.pulsar.context import PulsarRequest
from exacta.pulsar.producers import Producer

OF_PRODUCERS = frozenset({BaseCommand.SEND, BaseCommand.CLOSE_PRODUCER})
OF_CONSUMERS = frozenset(
    {
        BaseCommand.ACK,
        BaseCommand.CLOSE_CONSUMER,
        BaseCommand.CONSUMER_STATS,
        BaseCommand.FLOW,
        BaseCommand.GET_LAST_MESSAGE_ID,
        BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES,
        BaseCommand.SEEK,
        BaseCommand.UNSUBSCRIBE,
    }
)
"""The commands whose client id is the name of a producer or of a consumer. The others have none."""


def client_id_of(request: PulsarRequest, producers: Mapping[int, Producer], consumers: Consumers) -> str:
    """Return the name; empty where the command is for neither, or for one that is not open."""
    command = request.command
    named: Producer | Consumer | None = None
    if request.type in OF_CONSUMERS:
        named = consumers.get(command.consumer_id)  # type: ignore[attr-defined]
    elif request.type in OF_PRODUCERS:
        named = producers.get(command.producer_id)  # type: ignore[attr-defined]
    return "" if named is None else named.name
