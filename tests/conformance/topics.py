"""Topics for the scenarios, and the offsets that a broker reports of them, by librdkafka's admin client."""

import time
from collections.abc import Mapping

from confluent_kafka import IsolationLevel, KafkaException
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.conformance.clients import Isolation, TopicPartition
from tests.conformance.clients.interface import CALL_TIMEOUT_S

_LEVELS = {
    Isolation.COMMITTED: IsolationLevel.READ_COMMITTED,
    Isolation.UNCOMMITTED: IsolationLevel.READ_UNCOMMITTED,
}


class Topics:
    """Create topics and ask for end offsets."""

    def __init__(self, bootstrap: str) -> None:
        """Connect to the broker."""
        self._bootstrap = bootstrap
        self._admin = self._connect()

    def _connect(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200})

    def create(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Create a topic and wait until it exists."""
        wanted = NewTopic(name, partitions, 1, config=dict(config or {}))
        created = self._admin.create_topics([wanted], request_timeout=CALL_TIMEOUT_S)
        created[name].result(CALL_TIMEOUT_S)
        return name

    def offset_at(self, partition: TopicPartition, timestamp_ms: int | None) -> int:
        """Return the offset of the first record of this time or a later one; None: of the record of the latest time."""
        wanted = ConfluentTopicPartition(*partition)
        at = OffsetSpec.max_timestamp() if timestamp_ms is None else OffsetSpec.for_timestamp(timestamp_ms)
        answer = self._admin.list_offsets({wanted: at}, request_timeout=CALL_TIMEOUT_S)[wanted]
        return answer.result(CALL_TIMEOUT_S).offset

    def end_offset(self, partition: TopicPartition, isolation: Isolation) -> int:
        """Return the last stable offset (read_committed) or the high watermark (read_uncommitted).

        The admin client never learns what a broker's restart has changed, so another one asks where it fails.
        """
        wanted = ConfluentTopicPartition(*partition)
        deadline = time.monotonic() + CALL_TIMEOUT_S
        while True:
            answers = self._admin.list_offsets(
                {wanted: OffsetSpec.latest()}, isolation_level=_LEVELS[isolation], request_timeout=CALL_TIMEOUT_S
            )
            try:
                return answers[wanted].result(CALL_TIMEOUT_S).offset
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                self._admin = self._connect()
