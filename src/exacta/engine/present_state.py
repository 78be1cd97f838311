"""The state as it is in this step, durable or not: the engine's `Advice`.

Owns no state: it looks into the engine's. It answers from memory alone, and at once.
"""

from collections.abc import Callable, Mapping, Set
from typing import TypeVar

from exacta.core.access import authorizing
from exacta.core.commands import ConsumerHeartbeat
from exacta.core.groups.consumer.rehearsal import Scene, scene_of
from exacta.core.groups.consumer.subscriptions import topics_to_match
from exacta.core.ids import Offset, PartitionId, PrincipalName, ProducerId, TransactionId
from exacta.core.log import staging
from exacta.core.log.staging import NotEntered
from exacta.core.rejections import Rejection
from exacta.core.state.state import State
from exacta.core.values.acl import Operation, ResourceKind
from exacta.core.values.quotas import QuotaEntity, QuotaKey
from exacta.core.values.scram import ScramKey, ScramMechanism

T = TypeVar("T")


class PresentState:
    """See `exacta.ports.log.Advice`."""

    def __init__(self, state: State) -> None:
        self._state = state

    def look(self, view: Callable[[State], T]) -> T:
        """See `Advice.look`."""
        return view(self._state)

    def broker_configs(self) -> Mapping[str, Mapping[str, str]]:
        """See `Advice.broker_configs`."""
        return self._state.broker_configs

    @property
    def client_quotas(self) -> Mapping[QuotaEntity, Mapping[QuotaKey, float]]:
        """See `Advice.client_quotas`."""
        return self._state.client_quotas

    @property
    def quota_changes(self) -> int:
        """See `Advice.quota_changes`."""
        return self._state.volatile.quota_changes

    @property
    def leader_epoch(self) -> int:
        """See `Advice.leader_epoch`."""
        return self._state.leader_epoch

    def topic_name(self, topic_id: bytes) -> str | None:
        """See `Advice.topic_name`."""
        return self._state.volatile.topic_names.get(topic_id)

    def topics_to_match(self, group_id: str, *, subscribes: bool) -> Set[str]:
        """See `Advice.topics_to_match`."""
        return topics_to_match(self._state, group_id, subscribes=subscribes)

    def scene_of(self, command: ConsumerHeartbeat) -> Scene | None:
        """See `Advice.scene_of`."""
        return scene_of(self._state, command)

    def topic_configs(self, topic: str) -> Mapping[str, str] | None:
        """See `Advice.topic_configs`."""
        entry = self._state.topics.get(topic)
        return None if entry is None else entry.configs

    def partition_count(self, topic: str) -> int:
        """See `Advice.partition_count`."""
        entry = self._state.topics.get(topic)
        return 0 if entry is None else entry.partition_count

    def partition_id(self, topic: str, partition: int) -> PartitionId | None:
        """See `Advice.partition_id`."""
        entry = self._state.partition(topic, partition)
        return None if entry is None else entry.partition_id

    def place(self, partition_id: PartitionId) -> tuple[str, int] | None:
        """See `Advice.place`."""
        entry = self._state.partitions.get(partition_id)
        return None if entry is None else (entry.topic, entry.index)

    def has_subscription(self, topic: str, partition: int, name: str) -> bool:
        """See `Advice.has_subscription`."""
        entry = self._state.partition(topic, partition)
        return entry is not None and self._state.subscription((entry.partition_id, name)) is not None

    def find_staged(self, partition_id: PartitionId, provisional_offset: int) -> Offset | NotEntered:
        """See `Advice.find_staged`."""
        partition = self._state.partitions.get(partition_id)
        return NotEntered.GONE if partition is None else staging.find_staged(partition, provisional_offset)

    def refusal(self, partition_id: PartitionId) -> Rejection | None:
        """See `Advice.refusal`."""
        room = self._state.volatile.disk_room
        if room is not None and room.append_bytes <= 0:
            return Rejection.DISK_FULL
        return self._state.volatile.refusing.get(partition_id)

    def closings(self, partition_id: PartitionId) -> int:
        """See `Advice.closings`."""
        return self._state.volatile.closings.get(partition_id, 0)

    def has_consumers(self, topic: str) -> bool:
        """See `Advice.has_consumers`."""
        entry = self._state.topics.get(topic)
        ids = frozenset(() if entry is None else entry.partition_ids)
        deliveries = self._state.volatile.deliveries.items()
        return any(delivery.consumers for (partition_id, _), delivery in deliveries if partition_id in ids)

    def topic_epoch(self, topic: str, partition: int) -> int:
        """See `Advice.topic_epoch`."""
        entry = self._state.partition(topic, partition)
        return -1 if entry is None else entry.topic_epoch

    def named_sequence(self, name: str, topic: str, partition: int) -> int:
        """See `Advice.named_sequence`."""
        entry, writer_id = self._state.partition(topic, partition), self._state.volatile.writer_ids.get(name)
        return -1 if entry is None or writer_id is None else entry.named_sequences.get(writer_id, -1)

    def handle_producer_id(self, transaction_id: TransactionId) -> ProducerId | None:
        """See `Advice.handle_producer_id`."""
        transaction = self._state.transactions.get(transaction_id)
        return None if transaction is None or not transaction.is_known_by_id else transaction.producer_ids[-1]

    @property
    def acl_changes(self) -> int:
        """See `Advice.acl_changes`."""
        return self._state.volatile.acl_index.changes

    def acls_allow(
        self,
        principal: PrincipalName,
        host: str,
        operation: Operation,
        kind: ResourceKind,
        name: str | None,
        *,
        by_default: bool,
    ) -> bool:
        """See `Advice.acls_allow`."""
        if name is None:
            return authorizing.allows_any(self._state, principal, host, operation, kind, by_default)
        return authorizing.allows(self._state, principal, host, operation, kind, name, by_default)

    @property
    def has_users(self) -> bool:
        """See `Advice.has_users`."""
        return bool(self._state.scram_keys)

    def scram_key(self, user: str, mechanism: ScramMechanism) -> ScramKey | None:
        """See `Advice.scram_key`."""
        return next((each for each in self._state.scram_keys.get(user, ()) if each.mechanism is mechanism), None)
