"""Find the partitions that a reader reads: those of named topics, of topics that match an expression, or assigned ones.

This module owns the look-ups, which it repeats from time to time, and the ids of the topics. It runs on the driver.
"""

import time
from collections.abc import Collection

from exacta.client.routing import Client, UnknownTopic
from exacta.client.transactions import TopicPartition
from exacta.spark.options import OptionError, SourceOptions
from exacta.spark.source.planning import id_as_text

_AGE_S = 10.0
"""The time after which the partitions of the topics are looked up again."""
_FIRST_ANSWER_MS = 30_000.0
"""When a query begins, a cluster that cannot be reached is given up sooner, since mostly its address is wrong then."""


class Subscription:
    """The partitions that the options of one reader mean."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._partitions: list[TopicPartition] = []
        self._at_s = float("-inf")
        self._met = False
        self.topic_ids: dict[str, str] = {}
        """The topics' ids where the cluster has ids, as they were last looked up."""

    def look_again(self) -> None:
        """Ask the cluster the next time, however long ago it was asked."""
        self._at_s = float("-inf")

    def partitions(self, client: Client, known: Collection[TopicPartition] | None) -> list[TopicPartition]:
        """Return the partitions to read, without those of the `known` ones (None: all) that are gone.

        Raises `UnknownTopic` and `OptionError` if others are not there.
        """
        if not self._met:
            client.nodes(client.deadline(min(client.call_timeout_ms, _FIRST_ANSWER_MS)))
            self._met = True
        if time.monotonic() - self._at_s > _AGE_S:
            counts = self._counts(client, None if known is None else {topic for topic, _ in known})
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
            ids = {topic: client.topic_id(topic) for topic in counts}
            self.topic_ids = {topic: id_as_text(found) for topic, found in ids.items() if found is not None}
            self._at_s = time.monotonic()
        return self._partitions

    def _counts(self, client: Client, known: Collection[str] | None) -> dict[str, int]:
        """Return how many partitions each topic has."""
        topics: Collection[str] = self._options.topics
        pattern = self._options.topic_pattern
        if pattern is not None:
            topics = [topic for topic in client.topic_names() if pattern.fullmatch(topic)]
            # Named by nobody: one that is deleted between the two questions is just not there.
            known = None
        try:
            return client.partitions(topics)
        except UnknownTopic:
            pass
        counts = {}
        for topic in topics:
            try:
                counts.update(client.partitions([topic]))
            except UnknownTopic:
                if known is not None and topic not in known:
                    raise
        return counts
