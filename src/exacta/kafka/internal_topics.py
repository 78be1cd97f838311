"""The cluster's own topics are made as Apache Kafka makes them: by the first FindCoordinator (decision 0029)."""

from msgspec import Struct

from exacta.config.topic import CLEANUP_POLICY, COMPACT, COMPRESSION_TYPE, SEGMENT_BYTES
from exacta.core.commands import CreateTopic
from exacta.core.values.internal_topics import GROUP_OFFSETS, TRANSACTION_STATE

PARTITION_COUNT = 50
"""Kafka's default for both (`offsets.topic.num.partitions`, `transaction.state.log.num.partitions`)."""
_SEGMENT_BYTES = str(100 << 20)


class InternalTopic(Struct, frozen=True, kw_only=True):
    """Says how one of them is made where it does not exist yet."""

    name: str
    configs: dict[str, str]

    def create(self, topic_id: bytes) -> CreateTopic:
        """Return the command that makes it."""
        return CreateTopic(
            topic=self.name, topic_id=topic_id, partition_count=PARTITION_COUNT, configs=dict(self.configs)
        )


OF_GROUPS = InternalTopic(
    name=GROUP_OFFSETS,
    configs={CLEANUP_POLICY: COMPACT, COMPRESSION_TYPE: "producer", SEGMENT_BYTES: _SEGMENT_BYTES},
)
OF_TRANSACTIONS = InternalTopic(
    name=TRANSACTION_STATE,
    configs={
        CLEANUP_POLICY: COMPACT,
        COMPRESSION_TYPE: "uncompressed",
        "min.insync.replicas": "1",
        SEGMENT_BYTES: _SEGMENT_BYTES,
        "unclean.leader.election.enable": "false",
    },
)
MADE = {topic.name: topic.create for topic in (OF_GROUPS, OF_TRANSACTIONS)}
"""The commands that make them, from topic ids, by name."""
