"""CONSUMER_STATS tells a client how one of its consumers stands: its permits, its messages, and the backlog."""

from datetime import UTC, datetime

from google.protobuf.message import Message
from msgspec import Struct

from exacta.core.state.state import State
from exacta.core.subscriptions.description import TYPES, DescribedSubscription, Wanted, page_of
from exacta.front.backlog_counts import Backlog, count_backlogs
from exacta.front.broker import Broker
from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandConsumerStats,
    CommandConsumerStatsResponse,
    ServerError,
)
from exacta.pulsar.consumers import Consumer
from exacta.pulsar.context import Handler, PulsarRequest
from exacta.pulsar.needs import OPEN_TO_ALL

NEEDS = OPEN_TO_ALL
"""Nothing: the right to read was asked for when the consumer was opened."""


class Standing(Struct, frozen=True):
    """A consumer and its subscription, as they are in one state."""

    subscription: DescribedSubscription
    held: int
    """The messages that the consumer has and has not acknowledged; 0 where it gets everything in order."""
    is_blocked: bool


def handle(broker: Broker, command: CommandConsumerStats, request: PulsarRequest) -> None:
    """Answer with what is known of the consumer. Its rates are not counted, and are told as 0."""
    consumer = request.open_consumer(command.consumer_id)
    if consumer is None:
        return

    def view(state: State, now_ms: int) -> Standing | None:
        return _standing(state, consumer)

    def found(standing: Standing | None) -> None:
        if standing is None:
            request.refuse(ServerError.ConsumerNotFound, f"the subscription of consumer {consumer.number} is gone")
            return

        def counted(backlogs: list[Backlog]) -> None:
            request.reply(_stats(request, command, consumer, standing, backlogs[0]))

        count_backlogs(broker, request, [standing.subscription], counted)

    broker.read(request, view, found)


def _standing(state: State, consumer: Consumer) -> Standing | None:
    topic, index = consumer.place
    names = frozenset({consumer.subscription})
    page = page_of(state, Wanted(topics={topic: {index}}, names=names, most=1, most_size=1, most_partitions=1))
    delivery = state.volatile.deliveries.get((consumer.partition_id, consumer.subscription))
    present = None if delivery is None else delivery.consumers.get(consumer.consumer_id)
    if not page.subscriptions or present is None:
        return None
    held = 0 if consumer.is_in_order else present.held
    return Standing(page.subscriptions[0], held, held >= state.limits.max_unacknowledged_per_consumer)


def _stats(
    request: PulsarRequest,
    command: CommandConsumerStats,
    consumer: Consumer,
    standing: Standing,
    backlog: Backlog,
) -> CommandConsumerStatsResponse:
    return CommandConsumerStatsResponse(
        request_id=command.request_id,
        msg_rate_out=0,
        msg_throughput_out=0,
        msg_rate_redeliver=0,
        consumer_name=consumer.name,
        available_permits=max(consumer.allowed, 0),
        unacked_messages=standing.held,
        blocked_consumer_on_unacked_msgs=standing.is_blocked,
        address=f"/{request.connection.peer}",
        connected_since=_time(consumer.connected_ms),
        type=TYPES[consumer.subscription_type],
        msg_rate_expired=0,
        msg_backlog=backlog.left,
        message_ack_rate=0,
    )


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def refused(command: CommandConsumerStats, error: ServerError, text: str) -> Message:
    """Refuse the question in its own answer, as its clients expect it."""
    return CommandConsumerStatsResponse(request_id=command.request_id, error_code=error, error_message=text)


HANDLER = Handler(type=BaseCommand.CONSUMER_STATS, needs=NEEDS, handle=handle, refused=refused)
