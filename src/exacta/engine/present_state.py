"""The state as it is in this step, durable or not: what fronts ask before they know what to submit.

Owns no state: it looks into the engine's. It answers from memory alone, and at once. What is in the log is looked up in
`lookups.py`, and an answer that a client gets comes from `Engine.submit` or `Engine.read`.

What is said here may have changed in the loop's next turn, and a crash may undo it. So a command that rests on it must
be submitted in the same step, and an answer that rests on it must wait until that is durable (`Engine.read`).
"""

from collections.abc import Callable, Mapping, Set
from typing import TypeVar

from exacta.core.commands import ConsumerHeartbeat
from exacta.core.groups.consumer.rehearsal import Scene, scene_of
from exacta.core.groups.consumer.subscriptions import topics_to_match
from exacta.core.ids import Offset, PartitionId, ProducerId, TransactionId
from exacta.core.log import staging
from exacta.core.log.staging import NotEntered
from exacta.core.rejections import Rejection
from exacta.core.state.state import State

T = TypeVar("T")


class PresentState:
    """Tells what the state is in this step. Every method must be called on the event-loop thread."""

    def __init__(self, state: State) -> None:
        self._state = state

    def look(self, view: Callable[[State], T]) -> T:
        """Return a view of the state, which must copy what it returns. It is for numbers: no answer may rest on it."""
        return view(self._state)

    def broker_configs(self) -> Mapping[str, Mapping[str, str]]:
        """Return the options that were set while brokers ran (`State.broker_configs`)."""
        return self._state.broker_configs

    @property
    def leader_epoch(self) -> int:
        """Return the epoch of the log's leader, which is durable before it serves anybody (`core.log.leading`)."""
        return self._state.leader_epoch

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic that has this id; None if there is none."""
        return self._state.volatile.topic_names.get(topic_id)

    def topics_to_match(self, group_id: str, *, subscribes: bool) -> Set[str]:
        """Return the topics that the next heartbeat of a group may match with patterns."""
        return topics_to_match(self._state, group_id, subscribes=subscribes)

    def scene_of(self, command: ConsumerHeartbeat) -> Scene | None:
        """Return the scene on which a heartbeat should be rehearsed; None: it is short."""
        return scene_of(self._state, command)

    def topic_configs(self, topic: str) -> Mapping[str, str] | None:
        """Return the topic's own configurations; None: there is no topic."""
        entry = self._state.topics.get(topic)
        return None if entry is None else entry.configs

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has; 0 if there is no topic."""
        entry = self._state.topics.get(topic)
        return 0 if entry is None else entry.partition_count

    def partition_id(self, topic: str, partition: int) -> PartitionId | None:
        """Return the id of a partition; None if there is none. A topic that is created again has others."""
        entry = self._state.partition(topic, partition)
        return None if entry is None else entry.partition_id

    def place(self, partition_id: PartitionId) -> tuple[str, int] | None:
        """Return the topic and the index of a partition; None if there is none."""
        entry = self._state.partitions.get(partition_id)
        return None if entry is None else (entry.topic, entry.index)

    def has_subscription(self, topic: str, partition: int, name: str) -> bool:
        """Return whether a partition has a subscription of this name."""
        entry = self._state.partition(topic, partition)
        return entry is not None and self._state.subscription((entry.partition_id, name)) is not None

    def find_staged(self, partition_id: PartitionId, provisional_offset: int) -> Offset | NotEntered:
        """Return the offset at which a staged Pulsar message has entered a partition, or why there is none."""
        partition = self._state.partitions.get(partition_id)
        return NotEntered.GONE if partition is None else staging.find_staged(partition, provisional_offset)

    def refusal(self, partition_id: PartitionId) -> Rejection | None:
        """Return why a partition takes no batches; None: it takes them."""
        room = self._state.volatile.disk_room
        if room is not None and room.append_bytes <= 0:
            return Rejection.DISK_FULL
        return self._state.volatile.refusing.get(partition_id)

    def closings(self, partition_id: PartitionId) -> int:
        """Return how often a partition has closed its writers (`exacta.core.log.closing`)."""
        return self._state.volatile.closings.get(partition_id, 0)

    def has_consumers(self, topic: str) -> bool:
        """Return whether a consumer of a subscription is connected to a topic."""
        entry = self._state.topics.get(topic)
        ids = frozenset(() if entry is None else entry.partition_ids)
        deliveries = self._state.volatile.deliveries.items()
        return any(delivery.consumers for (partition_id, _), delivery in deliveries if partition_id in ids)

    def topic_epoch(self, topic: str, partition: int) -> int:
        """Return the epoch of the last writer that had a partition for itself; -1: none."""
        entry = self._state.partition(topic, partition)
        return -1 if entry is None else entry.topic_epoch

    def named_sequence(self, name: str, topic: str, partition: int) -> int:
        """Return the highest sequence of a named writer in a partition; -1 if it has written nothing there."""
        entry, writer_id = self._state.partition(topic, partition), self._state.volatile.writer_ids.get(name)
        return -1 if entry is None or writer_id is None else entry.named_sequences.get(writer_id, -1)

    def handle_producer_id(self, transaction_id: TransactionId) -> ProducerId | None:
        """Return the producer id of what is written by the id of an open transaction; None if none is known by it."""
        transaction = self._state.transactions.get(transaction_id)
        return None if transaction is None or not transaction.is_known_by_id else transaction.producer_ids[-1]
