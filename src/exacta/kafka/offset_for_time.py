"""The offset of a time: the batch is found by the journal's index, the record in it by looking at it, on a thread.

The record is the first one at that time or later, as with Apache Kafka. Those of a compressed batch are not seen: then
the batch's first offset is the answer, with its highest timestamp, so that a reader may get some earlier records.
"""

import logging
from collections.abc import Callable

from exacta.core.rejections import Rejection
from exacta.front.threads import on_thread
from exacta.kafka.broker import BrokerContext
from exacta.kafka.context import RequestContext
from exacta.ports.journal import TimeEntry
from exacta.ports.record_format import Buffer
from exacta.protocol.kafka.record_times import RecordTime, Unseen, find_record

logger = logging.getLogger("exacta.kafka")


def find_offset(
    broker: BrokerContext,
    context: RequestContext,
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
        broker.engine.lookups.read_batch(topic, partition, entry, context.guard(lambda batch: search(entry, batch)))

    def search(entry: TimeEntry, batch: Buffer | None) -> None:
        if batch is None:
            done(Rejection.STORAGE_ERROR)
            return
        on_thread(
            lambda: find_record(batch, timestamp_ms, start_offset), context.guard(lambda found: take(entry, found))
        )

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
            look(find(entry.last_offset + 1))

    def find(offset: int) -> TimeEntry | None:
        if timestamp_ms is None:
            return broker.engine.lookups.latest_batch(topic, partition)
        return broker.engine.lookups.batch_for_time(topic, partition, timestamp_ms, offset, end_offset)

    look(find(start_offset))
