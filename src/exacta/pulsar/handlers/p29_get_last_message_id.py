"""GET_LAST_MESSAGE_ID tells the last message that a consumer can get, and how far its subscription is."""

from collections.abc import Callable
from functools import partial

from exacta.core.ids import Offset, PartitionId
from exacta.core.queries.subscriptions import SubscriptionPosition, subscription_position
from exacta.core.values.subscriptions import SubscriptionType
from exacta.front.broker import Broker
from exacta.ports.log import Visible
from exacta.ports.record_format import Buffer, Converted, LogEntry, Wanted
from exacta.protocol.kafka.records import parse_batch_header
from exacta.protocol.pulsar.message_ids import EARLIEST_NUMBER, NO_BATCH_INDEX, message_id
from exacta.protocol.pulsar.messages_pb2 import (
    BaseCommand,
    CommandGetLastMessageId,
    CommandGetLastMessageIdResponse,
    MessageIdData,
    ServerError,
)
from exacta.pulsar.at_follower import NOT_READY
from exacta.pulsar.consumers import Consumer
from exacta.pulsar.context import Handler, PulsarRequest, plain_error
from exacta.pulsar.needs import OPEN_TO_ALL
from exacta.pulsar.shared import PulsarShared
from exacta.records.keyed_records import unopened
from exacta.records.pulsar_entries import entry_of

NEEDS = OPEN_TO_ALL

Read = Converted | Exception | None
"""A batch as clients read it; None: it cannot be read."""


def handle(broker: Broker, command: CommandGetLastMessageId, request: PulsarRequest) -> None:
    """Answer with the last message that the consumer's isolation level shows it; markers and what it hides are none.

    Clients compare the two ids to tell whether there is something to wait for. A reader that begins at the last message
    waits for that one if the two are equal. So a position behind the last message is told as the last message.

    A message of an open transaction counts for a reader of uncommitted ones once its sender has the receipt: the read
    waits until all that was written before it is shown.
    """
    consumer = request.open_consumer(command.consumer_id)
    if consumer is None:
        return

    def answer(at: SubscriptionPosition | None) -> None:
        visible = broker.engine.visible(*consumer.place)
        if at is None or visible is None:
            request.refuse(ServerError.TopicNotFound, f"{consumer.topic} is not there")
        else:
            _answer(broker, request, command, consumer, visible, at)

    broker.read(request, partial(subscription_position, **consumer.where), answer)


def _answer(
    broker: Broker,
    request: PulsarRequest,
    command: CommandGetLastMessageId,
    consumer: Consumer,
    visible: Visible,
    at: SubscriptionPosition,
) -> None:
    read_committed = at.reads_committed
    lookups, (_, shown_to) = broker.engine.lookups, visible.offsets(read_committed)
    end = lookups.visible_end(*consumer.place, shown_to, read_committed=read_committed)
    marked = _id(consumer, _done_before(broker, consumer, min(at.position, Offset(end))))
    # Where all is deleted, the end is the start of the log, and the batch before it may still lie in the journal.
    is_there = end > 0 and lookups.count_seen(consumer.partition_id, end - 1, end, read_committed=read_committed) > 0
    last = lookups.batch_at(consumer.partition_id, end - 1) if is_there else None
    if last is None:
        _reply(request, command, _id(consumer, None), marked)
        return

    def told(found: Converted | Exception | None) -> None:
        if isinstance(found, Exception):
            raise found
        if found is None:
            request.refuse(ServerError.PersistenceError, "the last message cannot be read")
        elif not found.entries:
            _reply(request, command, _id(consumer, None), marked)
        else:
            entry = found.entries[-1]
            index = _last_index(entry) if entry_of(entry.batch).is_batch else NO_BATCH_INDEX
            _reply(request, command, _id(consumer, Offset(entry.base_offset), index), marked)

    singly = consumer.subscription_type is SubscriptionType.KEY_SHARED
    _read_once(request.shared, (consumer.partition_id, *last, singly), request.guard(told))


def _read_once(
    shared: PulsarShared, key: tuple[PartitionId, Offset, Offset, bool], done: Callable[[Read], None]
) -> None:
    """Read a batch, by its partition and its offsets, as clients do; those who ask meanwhile get the same answer.

    A conversion may wait for others, and a client may ask hundreds of times: then one batch is held, and converted.
    """
    waiting = shared.last_messages.get(key)
    if waiting is not None:
        waiting.append(done)
        return
    shared.last_messages[key] = [done]

    def answer(found: Read) -> None:
        for each in shared.last_messages.pop(key):
            each(found)

    def read(batch: Buffer | None) -> None:
        if batch is None:
            answer(None)
        else:
            shared.form.convert([unopened(batch, parse_batch_header(batch))], Wanted(singly), answer)

    partition_id, first, last, singly = key
    shared.broker.engine.lookups.read_batch_at(partition_id, first, last, read)


def _last_index(entry: LogEntry) -> int:
    """Return the index of the last message that compaction has left of an entry; a reader waits for that one."""
    last = entry.base_offset + entry.offset_count - 1
    gaps = entry.gaps or ()
    return (gaps[-1][0] - 1 if gaps and gaps[-1][1] == last else last) - entry.base_offset


def _done_before(broker: Broker, consumer: Consumer, position: Offset) -> Offset | None:
    """Return the first offset of the last entry that is acknowledged as a whole, as are all before it."""
    if position == 0:
        return None
    found = broker.engine.lookups.batch_at(consumer.partition_id, position - 1)
    if found is None:
        return Offset(position - 1)
    return found[0] if found[1] < position else Offset(found[0] - 1)


def _id(consumer: Consumer, offset: Offset | None, batch_index: int = NO_BATCH_INDEX) -> MessageIdData:
    """Return the id of an entry; None stands for the place before the first one."""
    number = EARLIEST_NUMBER if offset is None or offset < 0 else offset
    return message_id(consumer.partition_id, number, partition=consumer.topic.partition, batch_index=batch_index)


def _reply(
    request: PulsarRequest, command: CommandGetLastMessageId, last: MessageIdData, marked: MessageIdData
) -> None:
    request.reply(
        CommandGetLastMessageIdResponse(
            request_id=command.request_id, last_message_id=last, consumer_mark_delete_position=marked
        )
    )


HANDLER = Handler(
    type=BaseCommand.GET_LAST_MESSAGE_ID, needs=NEEDS, at_follower=NOT_READY, handle=handle, refused=plain_error
)
