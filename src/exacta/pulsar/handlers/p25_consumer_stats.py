"""CONSUMER_STATS tells a client how one of its consumers stands: its permits, its messages, and the backlog."""

from datetime import UTC, datetime
from functools import partial

from google.protobuf.message import Message

from exacta.core.queries.subscriptions import ConsumerStats, describe_consumer
from exacta.front.backlog_counts import Backlog, count_backlogs
from exacta.front.broker import Broker
from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandConsumerStats,
    CommandConsumerStatsResponse,
    ServerError,
)
from exacta.pulsar.at_follower import NOT_READY
from exacta.pulsar.consumers import Consumer
from exacta.pulsar.context import Handler, PulsarRequest
from exacta.pulsar.needs import OPEN_TO_ALL

NEEDS = OPEN_TO_ALL
"""Nothing: the right to read was asked for when the consumer was opened."""


def handle(broker: Broker, command: CommandConsumerStats, request: PulsarRequest) -> None:
    """Answer with what is known of the consumer. Its rates are not counted, and are told as 0."""
    consumer = request.open_consumer(command.consumer_id)
    if consumer is None:
        return

    def found(described: ConsumerStats | None) -> None:
        if described is None:
            request.refuse(ServerError.ConsumerNotFound, f"the subscription of consumer {consumer.number} is gone")
            return

        def counted(backlogs: list[Backlog]) -> None:
            request.reply(_stats(request, command, consumer, described, backlogs[0]))

        count_backlogs(broker, request, [described.subscription], counted)

    broker.read(request, partial(describe_consumer, **consumer.where, consumer_id=consumer.consumer_id), found)


def _stats(
    request: PulsarRequest,
    command: CommandConsumerStats,
    consumer: Consumer,
    described: ConsumerStats,
    backlog: Backlog,
) -> CommandConsumerStatsResponse:
    return CommandConsumerStatsResponse(
        request_id=command.request_id,
        msg_rate_out=0,
        msg_throughput_out=0,
        msg_rate_redeliver=0,
        consumer_name=consumer.name,
        available_permits=max(consumer.allowed, 0),
        unacked_messages=described.held,
        blocked_consumer_on_unacked_msgs=described.is_blocked,
        address=f"/{request.connection.peer}",
        connected_since=_time(consumer.connected_ms),
        type=described.subscription.told.subscription_type,
        msg_rate_expired=0,
        msg_backlog=backlog.left,
        message_ack_rate=0,
    )


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def refused(command: CommandConsumerStats, error: ServerError, text: str) -> Message:
    """Refuse the question in its own answer, as its clients expect it."""
    return CommandConsumerStatsResponse(request_id=command.request_id, error_code=error, error_message=text)


HANDLER = Handler(type=BaseCommand.CONSUMER_STATS, needs=NEEDS, at_follower=NOT_READY, handle=handle, refused=refused)
