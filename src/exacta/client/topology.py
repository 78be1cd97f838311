"""Keep what a client has learned about its cluster: brokers, leaders, ids of topics, coordinators.

This module owns what was told last and when it is doubted. Asks nobody: `routing.py` asks, and hands the replies over.
"""

from typing import Any

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.schema import NO_UUID


class Topology:
    """The cluster as it was last seen."""

    def __init__(self) -> None:
        self.brokers: dict[int, tuple[str, int]] = {}  # addresses
        self.brokers_doubtful = False
        self.controller_id = -1
        self.cluster_id: str | None = None
        self.leaders: dict[str, dict[int, int]] = {}  # by topic and partition
        self.topic_ids: dict[str, bytes] = {}
        self.coordinators: dict[tuple[int, str], int] = {}  # by kind and key

    @property
    def controller(self) -> int | None:
        """Return the controller, or None where it is not known, or is no broker."""
        return self.controller_id if self.controller_id in self.brokers else None

    def leader(self, topic: str, partition: int) -> int | None:
        """Return the leader of a partition, or None where it is not known."""
        return self.leaders.get(topic, {}).get(partition)

    def learn_brokers(self, metadata: Any) -> list[int]:
        """Take over the brokers of a reply to Metadata; return those that have left or are elsewhere now."""
        if not metadata.brokers:
            return []
        brokers = {broker.node_id: (broker.host, broker.port) for broker in metadata.brokers}
        moved = [node_id for node_id, address in self.brokers.items() if brokers.get(node_id) != address]
        self.brokers, self.brokers_doubtful = brokers, False
        self.controller_id = metadata.controller_id
        self.cluster_id = metadata.cluster_id
        return moved

    def learn_topics(self, metadata: Any) -> dict[str, int]:
        """Take over the topics of a reply to Metadata; return the error code of each."""
        codes: dict[str, int] = {}
        for topic in metadata.topics:
            codes[topic.name] = topic.error_code
            self.topic_ids.pop(topic.name, None)
            if topic.error_code == ErrorCode.NONE:
                if topic.topic_id != NO_UUID:
                    self.topic_ids[topic.name] = topic.topic_id
                self.leaders[topic.name] = {
                    entry.partition_index: entry.leader_id for entry in topic.partitions if entry.leader_id >= 0
                }
                if len(self.leaders[topic.name]) < len(topic.partitions):
                    codes[topic.name] = ErrorCode.LEADER_NOT_AVAILABLE
            else:
                self.leaders.pop(topic.name, None)
        return codes

    def learn_coordinator(self, kind: int, key: str, reply: Any) -> bool:
        """Take over a reply to FindCoordinator; return whether that broker was not known to be there."""
        address = (reply.host, reply.port)
        moved = self.brokers.get(reply.node_id) != address
        self.brokers[reply.node_id] = address
        self.coordinators[kind, key] = reply.node_id
        return moved
