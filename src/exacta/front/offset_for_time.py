"""The offset of a time: the batch is found by the journal's index, the record in it by looking at its records.

The record is the first one at that time or later, as with Apache Kafka. A batch is opened for it where it is
compressed, always on a thread, one of each client at a time (`conversions.py`), and never into more bytes than a
producer's batch may have. Only a batch whose records cannot be read is answered by its first offset and its highest
timestamp: an older version has admitted it unread.
"""

import logging
from collections.abc import Callable
from functools import partial

from exacta.core.commands.subscriptions import LATEST
from exacta.core.ids import Offset
from exacta.core.rejections import Rejection
from exacta.front.broker import Broker
from exacta.front.request import Request
from exacta.ports.journal import TimeEntry
from exacta.ports.record_format import Buffer
from exacta.records.record_search import RecordTime, Unseen, find_record, search_bytes

logger = logging.getLogger("exacta.front")

Found = Callable[[RecordTime | Rejection | None], None]

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
    done: Found,
) -> None:
    """Call back with the first record of a time or later that readers may see, None where there is none.

    `timestamp_ms` None asks for the record with the latest time.
    """
    visible = broker.engine.visible(topic, partition)
    if visible is None:  # it was there when it was asked for, and is deleted now
        done(Rejection.UNKNOWN_TOPIC_OR_PARTITION)
    else:
        _Search(broker, request, (topic, partition), timestamp_ms, visible.offsets(read_committed), done).go_on()


class _Search:
    """The search for one record, batch by batch."""

    def __init__(
        self,
        broker: Broker,
        request: Request,
        place: tuple[str, int],
        timestamp_ms: int | None,
        offsets: tuple[int, int],
        done: Found,
    ) -> None:
        self._broker = broker
        self._request = request
        self._place = place
        self._timestamp_ms = timestamp_ms
        self._start_offset, self._end_offset = offsets
        self._next_offset = self._start_offset
        self._done = done

    def go_on(self) -> None:
        """Look for the next batch that may have the record."""
        lookups = self._broker.engine.lookups
        if self._timestamp_ms is None:
            entry = lookups.latest_batch(*self._place)
        else:
            entry = lookups.batch_for_time(*self._place, self._timestamp_ms, self._next_offset, self._end_offset)
        if entry is None or entry.first_offset >= self._end_offset:
            self._done(None)
            return
        self._next_offset = entry.last_offset + 1
        lookups.read_batch(*self._place, entry, self._request.guard(lambda batch: self._open(entry, batch)))

    def _open(self, entry: TimeEntry, batch: Buffer | None) -> None:
        if batch is None:
            self._done(Rejection.STORAGE_ERROR)
            return
        work = partial(find_record, batch, self._timestamp_ms, self._start_offset)
        take: Callable[[RecordTime | Exception | None], None] = partial(self._take, entry)
        found = self._request.guard(take)
        conversions, owner = self._broker.memory.conversions, self._request.connection.peer_host
        size = search_bytes(batch)
        if size is None:
            conversions.on_thread(work, found, owner=owner)
        else:
            conversions.convert(size, work, found, owner=owner)

    def _take(self, entry: TimeEntry, found: RecordTime | Exception | None) -> None:
        if isinstance(found, Unseen):
            self._done(RecordTime(max(entry.first_offset, self._start_offset), entry.max_timestamp_ms))
        elif isinstance(found, Exception):
            logger.error(
                "the batch of %s-%d at offset %d cannot be searched", *self._place, entry.first_offset, exc_info=found
            )
            self._done(Rejection.STORAGE_ERROR)
        elif found is not None or self._timestamp_ms is None:
            self._done(found)
        else:  # the record of that time is deleted, what is left of its batch is earlier; there may be many of them
            go_on = self._request.guard(lambda _: self.go_on())
            self._broker.engine.scheduler.call_soon(lambda: go_on(None))


def position_of_time(
    broker: Broker, request: Request, place: tuple[str, int], time_ms: int, done: Callable[[Offset | Rejection], None]
) -> None:
    """Call back with the offset at which a subscription gets the first message of a time or later; `LATEST`: none is.

    A message that an open transaction holds back counts: a reader gets it later. A Kafka record has its own time,
    and the messages of a Pulsar entry have the one of their entry.
    """

    def found(record: RecordTime | Rejection | None) -> None:
        if isinstance(record, RecordTime):
            done(Offset(record.offset))
        else:
            done(LATEST if record is None else record)

    find_offset(broker, request, *place, time_ms, read_committed=False, done=found)
