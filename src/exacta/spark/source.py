"""The reader that Spark sees: offsets on the driver, Arrow batches in the tasks.

Owns Spark's calls for a streaming source. `planning.py` divides offsets, `exacta.client` reads, `committed.py` hides
what was not committed.

Theory of operation. One long-lived process answers `latestOffset`, about 93 times a second while the query is idle.
Asking the cluster each time is cheap enough while data flows; but where nothing new has come and Spark asks again at
once, the whole query is idle, and `latestOffset` then waits in a fetch at the end of the partitions (`_Bell`), up to
100 ms: new data ends the wait, an idle query costs ten requests a second, and another source of the same query waits
no longer than that.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from exacta.client.errors import ClientError, DeadlineExceeded
from exacta.client.routing import Client, UnknownTopic
from exacta.client.topics import EARLIEST as AT_EARLIEST
from exacta.client.topics import LATEST as AT_LATEST
from exacta.client.topics import READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from exacta.client.transactions import TopicPartition
from exacta.spark import planning
from exacta.spark.bell import Bell
from exacta.spark.connect import client_of
from exacta.spark.options import EARLIEST, LATEST, OptionError, SourceOptions
from exacta.spark.planning import Positions, Range

if TYPE_CHECKING:
    from pyarrow import RecordBatch

#: Asked again within this time without a batch in between, the query is idle (Spark polls every 10 ms then).
_IDLE_AGAIN_S = 0.05
_IDLE_WAIT_MS = 100
#: How often the partitions of the topics are looked up again.
_TOPICS_AGE_S = 10.0
#: How long offsets are asked for before it is looked up whether their partitions are still there.
_GONE_AFTER_MS = 5_000


class RangePartition(InputPartition):  # type: ignore[misc]
    """One task's range."""

    def __init__(self, part: Range) -> None:
        super().__init__(tuple(part))
        self.part = part


class ExactaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads topics as a stream."""

    def __init__(self, options: SourceOptions, schema: Any) -> None:
        self._options = options
        self._schema = schema
        self._isolation_level = READ_COMMITTED if options.committed_only else READ_UNCOMMITTED
        self._initial: dict[str, dict[str, int]] | None = None
        self._target: Positions | None = None
        self._partitions: list[TopicPartition] = []
        self._partitions_at_s = float("-inf")
        self._bell: Bell | None = None
        self._nothing_new_at_s = float("-inf")

    # -- the driver's process -----------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, dict[str, int]]:
        """Return where a new query begins; the same whenever it is asked."""
        if self._initial is None:
            self._initial = planning.to_json(self._starting_positions())
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of a batch: `maxOffsetsPerTrigger`."""
        limit = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember where the topics end now: the query ends there."""
        self._target = self._available()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, dict[str, int]]:
        """Return where the next batch ends; equal to `start` where there is nothing to read."""
        begin = planning.from_json(start)
        available = self._available(begin) if self._target is None else dict(self._target)
        if self._nothing_new(begin, available) and self._target is None:
            if time.monotonic() - self._nothing_new_at_s < _IDLE_AGAIN_S and self._wait_for_more(available):
                available = self._available(begin)
            self._nothing_new_at_s = time.monotonic()
        known = self._with_new_partitions(begin, available)
        if self._options.fail_on_data_loss:
            planning.check_not_behind(begin, available)
        # What is gone or ends earlier stays where it was.
        for partition, position in begin.items():
            available[partition] = max(position, available.get(partition, position))
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return planning.to_json(planning.limited(known, available, most))

    def reportLatestOffset(self) -> dict[str, dict[str, int]]:
        """Return where the topics end, for the progress report."""
        return planning.to_json(self._available())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return one task for each partition that has offsets between `start` and `end`."""
        begin, finish = planning.from_json(start), planning.from_json(end)
        new = [partition for partition in finish if partition not in begin]
        first = self._first_offsets(new)
        return [RangePartition(part) for part in planning.ranges(begin, finish, first)]

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the checkpoint holds the offsets."""

    def stop(self) -> None:
        """Close the connections of this process."""
        if self._bell is not None:
            self._bell.close()
            self._bell = None
        self._client().close()

    # -- the tasks ----------------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Yield the visible rows of a range as Arrow batches."""
        assert isinstance(partition, RangePartition)
        from exacta.spark.reading import read_range

        yield from read_range(self._client(), self._options, self._schema, partition.part)

    # -- shared -------------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to one process."""
        return {**self.__dict__, "_bell": None}

    def _client(self) -> Client:
        return client_of(self._options.cluster)

    def _topic_partitions(self, known: Collection[TopicPartition] | None) -> list[TopicPartition]:
        """Return the partitions to read, without those of the `known` ones (None: all) that are gone.

        Raises `UnknownTopic` and `OptionError` where others are not there.
        """
        if time.monotonic() - self._partitions_at_s > _TOPICS_AGE_S:
            counts = self._partition_counts(None if known is None else {topic for topic, _ in known})
            assigned = self._options.assigned
            found = [
                TopicPartition(topic, index)
                for topic, count in counts.items()
                for index in (range(count) if assigned is None else assigned[topic])
            ]
            for topic, index in found:
                if index >= counts[topic] and known is not None and (topic, index) not in known:
                    raise OptionError(
                        f"option 'assign' names partition {index} of topic '{topic}', which has {counts[topic]}"
                    )
            self._partitions = [partition for partition in found if partition.partition < counts[partition.topic]]
            self._partitions_at_s = time.monotonic()
        return self._partitions

    def _partition_counts(self, known: Collection[str] | None) -> dict[str, int]:
        client = self._client()
        try:
            return client.partitions(self._options.topics)
        except UnknownTopic:
            counts = {}
            for topic in self._options.topics:
                try:
                    counts.update(client.partitions([topic]))
                except UnknownTopic:
                    if known is not None and topic not in known:
                        raise
            return counts

    def _available(self, known: Collection[TopicPartition] | None = None) -> Positions:
        """Return where the partitions end; without those that are gone, as `_topic_partitions` has it."""
        client = self._client()
        partitions = self._topic_partitions(known)
        try:
            return list_offsets(
                client,
                partitions,
                AT_LATEST,
                isolation_level=self._isolation_level,
                deadline=client.deadline(_GONE_AFTER_MS),
            )
        except DeadlineExceeded:
            self._partitions_at_s = float("-inf")
            partitions = self._topic_partitions(known)
            return list_offsets(client, partitions, AT_LATEST, isolation_level=self._isolation_level)

    def _starting_positions(self) -> Positions:
        wanted = self._options.starting_offsets
        # With Trigger.AvailableNow Spark has asked where the topics end before, and what was missing then went unsaid.
        self._partitions_at_s = float("-inf")
        partitions = self._topic_partitions(known=())
        client = self._client()
        if wanted == EARLIEST:
            return list_offsets(client, partitions, AT_EARLIEST)
        latest = list_offsets(client, partitions, AT_LATEST, isolation_level=self._isolation_level)
        if wanted == LATEST:
            return latest
        assert not isinstance(wanted, str)
        earliest = list_offsets(client, partitions, AT_EARLIEST)
        named = {TopicPartition(topic, index): at for topic, offsets in wanted.items() for index, at in offsets.items()}
        if named.keys() != set(partitions):
            missing = [f"{topic}-{index}" for topic, index in sorted(set(partitions) - named.keys())]
            unknown = [f"{topic}-{index}" for topic, index in sorted(named.keys() - set(partitions))]
            raise OptionError(
                "option 'startingOffsets' must name exactly the partitions that are read; "
                f"it leaves out {missing or 'none'} and names unread {unknown or 'none'}"
            )
        special = {AT_EARLIEST: earliest, AT_LATEST: latest}
        return {partition: special[at][partition] if at < 0 else at for partition, at in named.items()}

    def _with_new_partitions(self, begin: Positions, available: Positions) -> Positions:
        """Return the start of a batch where partitions that came into being since are read from their beginning."""
        new = [partition for partition in available if partition not in begin]
        return {**begin, **self._first_offsets(new)}

    def _first_offsets(self, new: Collection[TopicPartition]) -> Positions:
        """Return where partitions that are new to the query begin."""
        if not new:
            return {}
        first = list_offsets(self._client(), new, AT_EARLIEST)
        if self._options.fail_on_data_loss:
            planning.check_from_the_start(first)
        return first

    @staticmethod
    def _nothing_new(begin: Positions, available: Positions) -> bool:
        return all(partition in begin and end <= begin[partition] for partition, end in available.items())

    def _wait_for_more(self, available: Positions) -> bool:
        """Wait up to `_IDLE_WAIT_MS` for records after `available`; whether any came, as far as can be told."""
        if self._bell is None:
            self._bell = Bell(self._client(), self._isolation_level, _IDLE_WAIT_MS)
        try:
            return self._bell.wait(available)
        except ClientError:
            # Only a convenience: whatever is wrong, asking for the offsets says it better.
            self._bell.close()
            self._bell = None
            return True
