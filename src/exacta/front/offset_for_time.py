"""The offset of a time: the batch is found by the journal's index, the record in it by looking at its records.

The record is the first one at that time or later, as with Apache Kafka. A batch is opened for it where it is
compressed, always on a thread, one of each client at a time (`conversions.py`), and never into more bytes than a
producer's batch may have. Only a batch whose records cannot be read is answered by its first offset and its highest
timestamp: an older version has admitted it unread.
"""

import logging
from collections.abc import Callable

from exacta.core.ids import Offset
from exacta.core.rejections import Rejection
from exacta.core.subscriptions.commands import LATEST
from exacta.front.broker import Broker
from exacta.front.request import Request
from exacta.ports.journal import TimeEntry
from exacta.ports.record_format import Buffer
from exacta.records.record_search import RecordTime, Unseen, find_record, search_bytes

logger = logging.getLogger("exacta.front")

MAX_SEARCHES_IN_FLIGHT = 4
"""The bound for one request: each search holds a whole batch while it waits, and a request can name every partition."""


def find_offset(
    broker: Broker,
    request: Request,
    topic: str,
    partition: int,
    timestamp_ms: int | None,
    *,
    read_committed: bool,
    done: Callable[[RecordTime | Rejection | None], None],
) -> None:
    """Call back with the first record of a time or later that readers may see, None where there is none.

    `timestamp_ms` None asks for the record with the latest time.
    """
    visible = broker.engine.visible(topic, partition)
    if visible is None:  # it was there when it was asked for, and is deleted now
        done(Rejection.UNKNOWN_TOPIC_OR_PARTITION)
        return
    start_offset, end_offset = visible.offsets(read_committed)

    def look(entry: TimeEntry | None) -> None:
        if entry is None or entry.first_offset >= end_offset:
            done(None)
            return
        broker.engine.lookups.read_batch(topic, partition, entry, request.guard(lambda batch: search(entry, batch)))

    def search(entry: TimeEntry, batch: Buffer | None) -> None:
        if batch is None:
            done(Rejection.STORAGE_ERROR)
            return

        def work() -> RecordTime | None:
            return find_record(batch, timestamp_ms, start_offset)

        found = request.guard(lambda found: take(entry, found))
        conversions, size, owner = broker.memory.conversions, search_bytes(batch), request.connection.peer_host
        if size is None:
            conversions.on_thread(work, found, owner=owner)
        else:
            conversions.convert(size, work, found, owner=owner)

    def take(entry: TimeEntry, found: RecordTime | Exception | None) -> None:
        if isinstance(found, Unseen):
            done(RecordTime(max(entry.first_offset, start_offset), entry.max_timestamp_ms))
        elif isinstance(found, Exception):
            logger.error(
                "the batch of %s-%d at offset %d cannot be searched",
                topic,
                partition,
                entry.first_offset,
                exc_info=found,
            )
            done(Rejection.STORAGE_ERROR)
        elif found is not None or timestamp_ms is None:
            done(found)
        else:  # the record of that time is deleted, what is left of its batch is earlier
            go_on = request.guard(lambda _: look(find(entry.last_offset + 1)))
            broker.engine.scheduler.call_soon(lambda: go_on(None))  # there may be many such batches

    def find(offset: int) -> TimeEntry | None:
        if timestamp_ms is None:
            return broker.engine.lookups.latest_batch(topic, partition)
        return broker.engine.lookups.batch_for_time(topic, partition, timestamp_ms, offset, end_offset)

    look(find(start_offset))


def position_of_time(
    broker: Broker, request: Request, place: tuple[str, int], time_ms: int, done: Callable[[Offset | Rejection], None]
) -> None:
    """Call back with the offset at which a subscription gets the first message of a time or later; `LATEST`: none is.

    A message that an open transaction holds back counts: a reader gets it later. A record of Kafka's has its own time,
    and the messages of an entry of Pulsar's have the one of their entry.
    """

    def found(record: RecordTime | Rejection | None) -> None:
        if isinstance(record, RecordTime):
            done(Offset(record.offset))
        else:
            done(LATEST if record is None else record)

    find_offset(broker, request, *place, time_ms, read_committed=False, done=found)
