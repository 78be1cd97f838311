"""SUBSCRIBE opens a consumer of a subscription, which is created where there is none.

The isolation level that a consumer asks for is a property: no command of Pulsar's protocol has a field for it. PIP-298
has such a field, which neither Apache Pulsar 4.2 nor its clients know. But clients can send a property of the consumer
(also of a reader, by those for Go and C++), or one of the subscription. Both count here.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from exacta.core.commands import Subscribe
from exacta.core.commands.subscriptions import EARLIEST, LATEST
from exacta.core.ids import Offset, PartitionId
from exacta.core.queries.subscriptions import maker_of
from exacta.core.rejections import Rejection
from exacta.core.values.subscriptions import IN_ORDER, IsolationLevel, KeyShared, KeySharedMode, SubscriptionType
from exacta.front.broker import Broker
from exacta.front.offset_for_time import position_of_time
from exacta.ports.authorizer import Operation, ResourceKind
from exacta.ports.log import Answer
from exacta.protocol.pulsar.message_ids import offset_of
from exacta.protocol.pulsar.messages_pb2 import BaseCommand, CommandSubscribe, CommandSuccess, ServerError
from exacta.pulsar.acknowledging import end_beyond
from exacta.pulsar.at_follower import NOT_READY
from exacta.pulsar.consumers import MOST_CONSUMERS, Consumer
from exacta.pulsar.context import Handler, PulsarRequest, plain_error
from exacta.pulsar.needs import Need, Needs, allows_group, lacking, no_right, the_topic
from exacta.pulsar.provisional_ids import is_provisional, resolve
from exacta.pulsar.schemas import refusal_of
from exacta.pulsar.topic_names import NamedTopic
from exacta.pulsar.topics import find_topic, partition_to_open


def _durable(command: CommandSubscribe) -> Iterable[str]:
    """Name the subscription as a group, if it lasts; `_open` asks for the others."""
    return (command.subscription,) if command.durable else ()


NEEDS: Needs[CommandSubscribe] = (
    Need(Operation.READ, the_topic),
    Need(Operation.READ, _durable, ResourceKind.GROUP),
)

LONGEST_NAME: Final = 512
"""This many characters of a consumer's name are kept."""

ISOLATION_LEVEL: Final = "isolation.level"
"""The property, by the name of Kafka's option."""

_MOST_SHOWN: Final = 50
"""This many values, and this many characters of each, are told to a client that has sent others: a frame has room for
millions."""


def handle(broker: Broker, command: CommandSubscribe, request: PulsarRequest) -> None:
    """Open the consumer, once its topic is there.

    One that wants to read compacted messages gets what is left in the log, which is compacted for all readers.
    """
    if len(request.connection.consumers) >= MOST_CONSUMERS:
        request.refuse(ServerError.TooManyRequests, f"one connection may have {MOST_CONSUMERS} consumers")
        return
    schema_refusal = refusal_of(command.schema)
    if schema_refusal is not None:
        request.refuse(ServerError.IncompatibleSchema, schema_refusal)
        return
    if command.read_compacted and SubscriptionType(command.sub_type) not in IN_ORDER:
        text = "readCompacted only allowed on failover or exclusive subscriptions"
        request.refuse(ServerError.NotAllowedError, text)
        return
    try:
        isolation_level = _isolation_level(command)
    except ValueError as error:
        request.refuse(ServerError.NotAllowedError, str(error))
        return
    if not request.connection.consumers.begin_to_open(command.consumer_id, request):
        request.refuse(ServerError.ServiceNotReady, f"consumer {command.consumer_id} is being opened already")
        return
    find_topic(
        broker,
        request,
        command.topic,
        lambda topic: _open(broker, command, request, topic, isolation_level),
        creates=command.force_topic_creation,
        error_of=partial(request.connection.consumers.error_without_topic, command.consumer_id),
    )


def _open(
    broker: Broker,
    command: CommandSubscribe,
    request: PulsarRequest,
    topic: NamedTopic,
    isolation_level: IsolationLevel,
) -> None:
    consumers = request.connection.consumers
    error_of = partial(consumers.error_without_topic, command.consumer_id)
    partition_id = partition_to_open(broker, request, topic, error_of)
    if partition_id is None:
        return
    older = consumers.get(command.consumer_id)
    if older is not None and (older.topic, older.subscription) == (topic.name, command.subscription):
        # Go's client asks again when it looks for its connection.
        broker.when_durable(request, lambda: _confirm(request, command, older))
        return
    if older is not None:
        request.refuse(ServerError.NotAllowedError, f"consumer {command.consumer_id} of this connection is open")
        return

    needs_group = command.durable or not _is_free(broker, command, request, topic)
    lack = _lacks_group(broker, command, request, needs_group)
    if lack is not None:
        broker.when_durable(request, lambda: request.refuse(ServerError.AuthorizationError, lack))
        return

    unclear = _resolve_start(broker, command, partition_id)
    if unclear is not None:
        broker.when_durable(request, lambda: request.refuse(ServerError.NotAllowedError, unclear))
        return

    consumer = Consumer(
        number=command.consumer_id,
        consumer_id=broker.engine.new_consumer_id(),
        name=command.consumer_name[:LONGEST_NAME],
        topic=topic.name,
        place=topic.place,
        partition_id=partition_id,
        subscription=command.subscription,
        subscription_type=SubscriptionType(command.sub_type),
        needs_group=needs_group,
        connected_ms=broker.wall_ms(),
        epoch=command.consumer_epoch if command.HasField("consumer_epoch") else None,
    )

    subscribe = partial(_subscribe, broker, command, request, consumer, isolation_level)
    _find_begin(broker, command, request, consumer, subscribe)


def _find_begin(
    broker: Broker,
    command: CommandSubscribe,
    request: PulsarRequest,
    consumer: Consumer,
    subscribe: Callable[[Offset], None],
) -> None:
    """Call back with the first message of a new subscription; refuse the command where it cannot be looked for."""

    def found(begin: Offset | Rejection) -> None:
        if isinstance(begin, Rejection):
            request.reject(begin)
        else:
            subscribe(begin)

    if not command.start_message_rollback_duration_sec:
        subscribe(_begin(command, consumer))
        return

    def look() -> None:
        time_ms = broker.wall_ms() - 1000 * command.start_message_rollback_duration_sec
        position_of_time(broker, request, consumer.place, time_ms, found)

    broker.when_shown(request, (consumer.place,), look)  # a message that is not seen yet would be passed over


def _is_free(broker: Broker, command: CommandSubscribe, request: PulsarRequest, topic: NamedTopic) -> bool:
    """Return whether no other client has made the subscription."""
    maker = broker.engine.view(partial(maker_of, place=topic.place, name=command.subscription))
    return maker in (None, request.principal.durable_name)


def _lacks_group(broker: Broker, command: CommandSubscribe, request: PulsarRequest, needs_group: bool) -> str | None:
    """Say that the client lacks the right to read by the subscription; None: it has it, or needs none."""
    if not needs_group or allows_group(broker, request, command.subscription):
        return None
    return no_right(Operation.READ, ResourceKind.GROUP, command.subscription)


def _subscribe(
    broker: Broker,
    command: CommandSubscribe,
    request: PulsarRequest,
    consumer: Consumer,
    isolation_level: IsolationLevel,
    begin: Offset,
) -> None:
    consumers = request.connection.consumers
    if not consumers.may_open(command.consumer_id, request):  # nobody would close the consumer
        request.refuse(ServerError.ServiceNotReady, "the consumer was closed before it was open")
        return
    lack = lacking(broker, request, NEEDS, command) or _lacks_group(broker, command, request, consumer.needs_group)
    if lack is not None:  # it had the right when its command came, and nobody would close the consumer
        request.refuse(ServerError.AuthorizationError, lack)
        return
    subscribe = Subscribe(
        **consumer.where,
        subscription_type=consumer.subscription_type,
        begin=begin,
        durable=command.durable,
        isolation_level=isolation_level,
        properties={each.key: each.value for each in command.subscription_properties},
        principal=request.principal.durable_name,
    )

    def done(answers: list[Answer]) -> None:
        rejection = next((each for each in answers if isinstance(each, Rejection)), None)
        if rejection is not None:
            consumers.forget(consumer)
            _refuse(request, command, consumer, rejection)
        else:
            consumers.is_open_again(consumer.number)
            request.reply(CommandSuccess(request_id=command.request_id))

    connect = consumers.connection_command(
        consumer,
        priority=command.priority_level,
        key_shared=_key_shared(command),
        durable=command.durable,
        isolation_level=isolation_level,
    )
    broker.submit(request, (subscribe, connect), done)


def _confirm(request: PulsarRequest, command: CommandSubscribe, older: Consumer) -> None:
    """Answer a SUBSCRIBE that has come again."""
    if request.connection.consumers.get(command.consumer_id) is older:
        request.reply(CommandSuccess(request_id=command.request_id))
    else:
        request.refuse(ServerError.ServiceNotReady, "the consumer was refused, or closed")


def _isolation_level(command: CommandSubscribe) -> IsolationLevel:
    """Return the level that a SUBSCRIBE asks for; raise ValueError, with words for the client, if it names none."""
    properties = (*command.metadata, *command.subscription_properties)
    values = {each.value for each in properties if each.key == ISOLATION_LEVEL}
    words = {each.upper() for each in values}
    if not words:
        return IsolationLevel.READ_COMMITTED
    if len(words) > 1 or not words <= IsolationLevel.__members__.keys():
        found = ", ".join(sorted(repr(each[:_MOST_SHOWN]) for each in values)[:_MOST_SHOWN])
        raise ValueError(f"the property {ISOLATION_LEVEL} is read_committed or read_uncommitted, and not {found}")
    return IsolationLevel[words.pop()]


def _key_shared(command: CommandSubscribe) -> KeyShared:
    """Return how the consumer wants to share a Key_Shared subscription; one that does not say it takes its part."""
    meta = command.key_shared_meta
    ranges = tuple((each.start, each.end) for each in meta.hash_ranges)
    return KeyShared(KeySharedMode(meta.key_shared_mode), ranges, meta.allow_out_of_order_delivery)


def _begin(command: CommandSubscribe, consumer: Consumer) -> Offset:
    """Return where a new subscription begins; one that is there goes on from where it is."""
    if not command.HasField("start_message_id"):
        is_latest_wanted = command.initial_position == CommandSubscribe.Latest
        return LATEST if is_latest_wanted else EARLIEST
    start = command.start_message_id
    end = end_beyond(consumer.partition_id, start)
    # The client drops what is before the message in its entry.
    return Offset(start.entry_id) if end is None else end


def _resolve_start(broker: Broker, command: CommandSubscribe, partition_id: PartitionId) -> str | None:
    """Turn a provisional id of the first message into an ordinary one; return why that cannot be. None: it can.

    A client that was told a provisional id cannot drop what is before its message in a batch, so this is left out here.
    """
    start = command.start_message_id
    if not is_provisional(start):
        return None
    unclear = resolve(broker.engine.advice, partition_id, [start])
    if unclear is None:
        start.entry_id = offset_of(start)
    return unclear


def _refuse(request: PulsarRequest, command: CommandSubscribe, consumer: Consumer, rejection: Rejection) -> None:
    if rejection is Rejection.UNKNOWN_TOPIC_OR_PARTITION:
        error = request.connection.consumers.error_without_topic(consumer.number, consumer.topic)
        request.refuse(error, f"{consumer.topic} is not there")
    elif rejection is Rejection.SUBSCRIPTION_BUSY:
        text = f"the subscription {command.subscription!r} has consumers that do not share it so"
        request.refuse(ServerError.ConsumerBusy, text)
    elif rejection is Rejection.KEY_RANGES_REFUSED:
        text = "the consumer names no hashes, names some in disorder or twice, or names some of another consumer's"
        request.refuse(ServerError.ConsumerAssignError, text)
    elif rejection is Rejection.UNCOMMITTED_NOT_DURABLE:
        text = (
            f"the subscription {command.subscription!r} is to be durable, and a durable one cannot have the property "
            f"{ISOLATION_LEVEL}=read_uncommitted: make it non-durable, or use a reader"
        )
        request.refuse(ServerError.NotAllowedError, text)
    elif rejection is Rejection.ISOLATION_LEVELS_DIFFER:
        text = (
            f"the consumers of the subscription {command.subscription!r} have another {ISOLATION_LEVEL}: "
            "ask for the same one, or use a subscription of your own"
        )
        request.refuse(ServerError.ConsumerBusy, text)
    else:
        request.reject(rejection)


HANDLER = Handler(type=BaseCommand.SUBSCRIBE, needs=NEEDS, at_follower=NOT_READY, handle=handle, refused=plain_error)
