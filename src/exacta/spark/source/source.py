"""The reader that Spark sees. It gives offsets on the driver, and Arrow batches in the tasks.

This module owns Spark's calls for a streaming source. `subscription.py` knows the partitions, `bounds.py` where a new
query begins, `planning.py` divides offsets, `reading.py` reads them, `consumer_group.py` tells lag tools how far the
query is.

Theory of operation. One long-lived process answers `latestOffset`, about 93 times a second while the query is idle.
Asking the cluster each time is cheap enough while data flows. But if nothing new has come and Spark asks again at once,
the whole query is idle. `latestOffset` then waits in a fetch at the end of the partitions (`Bell`), up to 100 ms: new
data ends the wait, an idle query costs ten requests a second, and another source of the same query waits no longer than
that. While `minOffsetsPerTrigger` holds a batch back there is nothing to be woken for, and it sleeps as long.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from exacta.client.errors import ClientError, DeadlineExceeded
from exacta.client.routing import Client
from exacta.client.topics import EARLIEST, LATEST, READ_UNCOMMITTED, list_offsets
from exacta.client.transactions import TopicPartition
from exacta.spark.clients import client_of
from exacta.spark.error_sentences import explained, explaining
from exacta.spark.options import OptionError, SourceOptions
from exacta.spark.source import planning
from exacta.spark.source.bounds import isolation_level, starting_positions
from exacta.spark.source.cancellable_wait import Bell
from exacta.spark.source.consumer_group import GroupOffsets
from exacta.spark.source.driver_rows import SmallBatches
from exacta.spark.source.planning import Positions, Range
from exacta.spark.source.subscription import Subscription

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_IDLE_AGAIN_S = 0.05
"""A query that asks again within this time without a batch in between is idle (Spark polls every 10 ms then)."""
_IDLE_WAIT_MS = 100
_GONE_AFTER_MS = 5_000
"""The time for which offsets are asked for before the source looks up whether their partitions are still there."""

Stored = dict[str, dict[str, int]]


class RangePartition(InputPartition):  # type: ignore[misc]
    """The part of the input that one task reads: a range, or all ranges of a small batch."""

    def __init__(self, parts: Sequence[Range]) -> None:
        super().__init__([tuple(part) for part in parts])
        self.parts = parts


def range_partitions(options: SourceOptions, ranges: list[Range]) -> list[InputPartition]:
    """Return the tasks that read `ranges`, sliced as the options ask."""
    parts = planning.sliced(ranges, at_least=options.min_partitions, at_most_offsets=options.max_records_per_partition)
    return [RangePartition([part]) for part in parts]


class ExactaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads topics as a stream."""

    def __init__(self, options: SourceOptions, schema: Any) -> None:
        self.options = options
        self._schema = schema
        self._subscription = Subscription(options)
        self._group = None if options.commit_group is None else GroupOffsets(options.commit_group)
        self._initial: Stored | None = None
        self._target: Positions | None = None
        self._target_unchecked = False
        self._seen: Positions | None = None
        self._small_batches = SmallBatches(options.driver_rows)
        self._rows: list[RecordBatch] = []
        self._bell: Bell | None = None
        self._asked_in_vain_at_s = float("-inf")
        self._triggered_at_s = float("-inf")

    # --- the driver's process -----------------------------------------------------------------------------------------

    @explaining
    def initialOffset(self) -> Stored:
        """Return where a new query begins; the same whenever it is asked."""
        if self._initial is None:
            # With Trigger.AvailableNow Spark has asked where the topics end before; what was missing then went unsaid.
            self._subscription.look_again()
            client = self._client()
            partitions = self._subscription.partitions(client, known=())
            found = starting_positions(client, self.options, partitions)
            self._initial = planning.to_json(found, self._subscription.topic_ids)
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of a batch: `maxOffsetsPerTrigger`, else `minOffsetsPerTrigger`."""
        # Spark takes one limit; `latestOffset` knows the other one by itself.
        if self.options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self.options.max_offsets_per_trigger)
        if self.options.min_offsets_per_trigger is not None:
            return ReadMinRows(self.options.min_offsets_per_trigger)
        return ReadAllAvailable()

    @explaining
    def prepareForTriggerAvailableNow(self) -> None:
        """Remember where the topics end now: the query ends there."""
        # Where the query begins is not known yet, nor, then, whether it has met what is missing before.
        self._target = self._available(None)
        self._target_unchecked = True

    @explaining
    def latestOffset(self, start: Stored, limit: ReadLimit) -> Stored:
        """Return where the next batch ends; `start` itself where there is none."""
        begin = planning.from_json(start)
        self._finished(begin)
        if self._target_unchecked:
            self._subscription.look_again()
            self._subscription.partitions(self._client(), begin)
            self._target_unchecked = False
        available = self._available(begin) if self._target is None else dict(self._target)
        if self._nothing_new(begin, available) and self._target is None:
            if self._asked_again() and self._wait_for_more(available):
                available = self._available(begin)
            self._asked_in_vain_at_s = time.monotonic()
        self._seen = dict(available)
        begin = self._without_replaced(start, begin)
        known = {**begin, **self._first_offsets([partition for partition in available if partition not in begin])}
        if self.options.fail_on_data_loss:
            planning.check_not_behind(begin, self._ends_for(begin, available))
        # What is gone or ends earlier stays where it was.
        for partition, position in begin.items():
            available[partition] = max(position, available.get(partition, position))
        if self._too_little(known, available, limit):
            return start
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        ends = planning.limited(known, available, most)
        if ends == begin:
            # Also where an older checkpoint names no ids yet: Spark would take another text for new data.
            return start
        self._triggered_at_s = time.monotonic()
        return planning.to_json(ends, {**planning.topic_ids_in(start), **self._subscription.topic_ids})

    @explaining
    def reportLatestOffset(self) -> Stored:
        """Return where the topics end, as `latestOffset` has last seen it, for the progress report."""
        return planning.to_json(self._available(None) if self._seen is None else self._seen)

    @explaining
    def partitions(self, start: Stored, end: Stored) -> list[InputPartition]:
        """Return the tasks that read what lies between `start` and `end`."""
        ids = planning.topic_ids_in(end) if self.options.check_topic_ids else {}
        # Nothing is planned beyond a topic that was created again unless the option allows it: else it was moved.
        remade = [] if self.options.fail_on_data_loss else planning.replaced(planning.topic_ids_in(start), ids)
        begin = {at: offset for at, offset in planning.from_json(start).items() if at.topic not in remade}
        finish = planning.from_json(end)
        first = self._first_offsets([partition for partition in finish if partition not in begin])
        ranges = planning.ranges(begin, finish, first, ids)
        rows = self._small_batches.rows_of(self._client(), self.options, self._schema, ranges)
        if rows is None:
            return range_partitions(self.options, ranges)
        self._rows = rows
        self.__class__ = _ReaderWithRows
        return [RangePartition(ranges)]

    def commit(self, end: Stored) -> None:
        """Tell the group of option `commit.group.id`; the query itself relies on its checkpoint."""
        self._finished(planning.from_json(end))

    def stop(self) -> None:
        """Close the connections of this process."""
        if self._group is not None:
            self._group.last_try(self._client())
        if self._bell is not None:
            self._bell.close()
            self._bell = None
        self._client().close()

    # --- the tasks ----------------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Yield the visible rows of a range as Arrow batches."""
        assert isinstance(partition, RangePartition)
        from exacta.spark.source.reading import read_ranges

        yield from read_ranges(self._client(), self.options, self._schema, partition.parts)

    # --- shared -------------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to one process."""
        return {**self.__dict__, "_bell": None, "_group": None}

    def _client(self) -> Client:
        return client_of(self.options.cluster)

    def _available(self, known: Collection[TopicPartition] | None) -> Positions:
        """Return where the partitions end; without those that are gone, as `Subscription.partitions` has it."""
        client = self._client()
        partitions = self._subscription.partitions(client, known)
        level = isolation_level(self.options)
        try:
            deadline = client.deadline(_GONE_AFTER_MS)
            return list_offsets(client, partitions, LATEST, isolation_level=level, deadline=deadline)
        except DeadlineExceeded:
            self._subscription.look_again()
            partitions = self._subscription.partitions(client, known)
            return list_offsets(client, partitions, LATEST, isolation_level=level)

    def _ends_for(self, begin: Positions, available: Positions) -> Positions:
        """Return `available`, with the true ends if a query has begun inside open transactions, as it was told to.

        The offsets there are behind the last stable one, and not lost.
        """
        early = [at for at, position in begin.items() if at in available and available[at] < position]
        if not early:
            return available
        return available | list_offsets(self._client(), early, LATEST, isolation_level=READ_UNCOMMITTED)

    def _finished(self, position: Positions) -> None:
        """Note that all batches before `position` are finished.

        Spark calls `commit` only when it plans another batch, so never for the last one of Trigger.AvailableNow. But
        Spark asks for the latest offset behind that batch too, and it has committed the batch up to the offset that it
        asks from.
        """
        if self._group is not None:
            self._group.reached(self._client(), position)

    def _without_replaced(self, start: Stored, begin: Positions) -> Positions:
        """Return the positions of the topics that are still the same ones; the others are new to the query."""
        if not self.options.check_topic_ids:
            return begin
        remade = planning.replaced(planning.topic_ids_in(start), self._subscription.topic_ids)
        if self.options.fail_on_data_loss:
            planning.check_not_replaced(remade)
        return {at: offset for at, offset in begin.items() if at.topic not in remade} if remade else begin

    def _first_offsets(self, new: Collection[TopicPartition]) -> Positions:
        """Return where partitions that are new to the query begin."""
        if not new:
            return {}
        first = list_offsets(self._client(), new, EARLIEST)
        if self.options.fail_on_data_loss:
            planning.check_from_the_start(first)
        return first

    def _too_little(self, begin: Positions, available: Positions, limit: ReadLimit) -> bool:
        """Return whether `minOffsetsPerTrigger` holds the batch back.

        A call that follows at once answers a moment later.
        """
        least = self.options.min_offsets_per_trigger
        if least is None or self._target is not None or isinstance(limit, ReadAllAvailable):
            return False
        ready = sum(end - begin[partition] for partition, end in available.items())
        left_s = self._triggered_at_s + self.options.max_trigger_delay_ms / 1000 - time.monotonic()
        if ready == 0 or ready >= least or left_s <= 0:
            return False
        if self._asked_again():
            time.sleep(min(left_s, _IDLE_WAIT_MS / 1000))
        self._asked_in_vain_at_s = time.monotonic()
        return True

    def _asked_again(self) -> bool:
        return time.monotonic() - self._asked_in_vain_at_s < _IDLE_AGAIN_S

    @staticmethod
    def _nothing_new(begin: Positions, available: Positions) -> bool:
        return all(partition in begin and end <= begin[partition] for partition, end in available.items())

    def _wait_for_more(self, available: Positions) -> bool:
        """Wait up to `_IDLE_WAIT_MS` for records after `available`; whether any came, as far as can be told."""
        if self._bell is None:
            self._bell = Bell(self._client(), isolation_level(self.options), _IDLE_WAIT_MS)
        try:
            return self._bell.wait(available)
        except ClientError:
            # Only a convenience: whatever is wrong, asking for the offsets says it better.
            self._bell.close()
            self._bell = None
            return True


class _ReaderWithRows(ExactaStreamReader, _SimpleStreamReaderWrapper):  # type: ignore[misc]
    """The form of a reader from the plan of a small batch until Spark has its rows (`driver_rows.py`)."""

    def getCache(self, start: Stored, end: Stored) -> Iterator[RecordBatch]:
        """Return the rows of the batch that has just been planned."""
        self.__class__ = ExactaStreamReader
        rows, self._rows = self._rows, []
        return iter(rows)


class RefusedStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """Stands for a reader whose options are wrong, and says so when Spark first asks it for something."""

    def __init__(self, error: OptionError) -> None:
        self._error = error

    @explained()
    def initialOffset(self) -> Stored:
        """Raise what is wrong."""
        raise self._error

    @explained()
    def latestOffset(self, start: Stored, limit: ReadLimit) -> Stored:
        """Raise what is wrong."""
        raise self._error

    @explained()
    def partitions(self, start: Stored, end: Stored) -> list[InputPartition]:
        """Raise what is wrong: a query that goes on may ask for this first."""
        raise self._error

    @explained()
    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Raise what is wrong."""
        raise self._error
