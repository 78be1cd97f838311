"""Advice: the state as it is in this step, durable or not, which fronts ask before they know what to submit.

Advice is no answer. It may have changed in the loop's next turn, a crash may undo it, and another broker may lead the
log by now. So a command that rests on it must be submitted in the same step, where the core decides again. An answer
that rests on it must be handed out by `Log.read` or `Log.confirm`.
"""

from collections.abc import Callable, Mapping, Set
from typing import Protocol, TypeVar

from exacta.core.commands import ConsumerHeartbeat
from exacta.core.groups.consumer.rehearsal import Scene
from exacta.core.ids import Offset, PartitionId, PrincipalName, ProducerId, TransactionId
from exacta.core.log.staging import NotEntered
from exacta.core.rejections import Rejection
from exacta.core.state.state import State
from exacta.core.values.acl import Operation, ResourceKind
from exacta.core.values.quotas import QuotaEntity, QuotaKey
from exacta.core.values.scram import ScramKey, ScramMechanism

T = TypeVar("T")


class Advice(Protocol):
    """Tells what the state is in this step. Every method must be called on the event-loop thread."""

    def look(self, view: Callable[[State], T]) -> T:
        """Return a view of the state, which must copy what it returns. It is for numbers: no answer may rest on it."""

    def broker_configs(self) -> Mapping[str, Mapping[str, str]]:
        """Return the options that were set while brokers ran (`State.broker_configs`)."""

    @property
    def leader_epoch(self) -> int:
        """Return the epoch of the log's leader, which is durable before it serves anybody (`core.log.leading`)."""

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic that has this id; None if there is none."""

    def topics_to_match(self, group_id: str, *, subscribes: bool) -> Set[str]:
        """Return the topics that the next heartbeat of a group may match with patterns."""

    def scene_of(self, command: ConsumerHeartbeat) -> Scene | None:
        """Return the scene on which a heartbeat should be rehearsed; None: it is short."""

    def topic_configs(self, topic: str) -> Mapping[str, str] | None:
        """Return the topic's own configurations; None: there is no topic."""

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has; 0 if there is no topic."""

    def partition_id(self, topic: str, partition: int) -> PartitionId | None:
        """Return the id of a partition; None if there is none. A topic that is created again has others."""

    def place(self, partition_id: PartitionId) -> tuple[str, int] | None:
        """Return the topic and the index of a partition; None if there is none."""

    def has_subscription(self, topic: str, partition: int, name: str) -> bool:
        """Return whether a partition has a subscription of this name."""

    def find_staged(self, partition_id: PartitionId, provisional_offset: int) -> Offset | NotEntered:
        """Return the offset at which a staged Pulsar message has entered a partition, or why there is none."""

    def refusal(self, partition_id: PartitionId) -> Rejection | None:
        """Return why a partition takes no batches; None: it takes them."""

    def closings(self, partition_id: PartitionId) -> int:
        """Return how often a partition has closed its writers (`exacta.core.log.closing`)."""

    def has_consumers(self, topic: str) -> bool:
        """Return whether a consumer of a subscription is connected to a topic."""

    def topic_epoch(self, topic: str, partition: int) -> int:
        """Return the epoch of the last writer that had a partition for itself; -1: none."""

    def named_sequence(self, name: str, topic: str, partition: int) -> int:
        """Return the highest sequence of a named writer in a partition; -1 if it has written nothing there."""

    def handle_producer_id(self, transaction_id: TransactionId) -> ProducerId | None:
        """Return the producer id of what is written by the id of an open transaction; None if none is known by it."""

    @property
    def acl_changes(self) -> int:
        """Return how often access rules have changed since the start: what was concluded holds while it is the same."""

    @property
    def client_quotas(self) -> Mapping[QuotaEntity, Mapping[QuotaKey, float]]:
        """The quotas of users, clients and addresses: the same object for the life of the log, which changes."""

    @property
    def quota_changes(self) -> int:
        """The number of changes of quotas since the start."""

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
        """Return what the access rules say (`core.access.authorizing`); a name of None is any of the kind."""

    @property
    def has_users(self) -> bool:
        """Return whether there is a user who could log in by a password."""

    def scram_key(self, user: str, mechanism: ScramMechanism) -> ScramKey | None:
        """Return what is kept of a user's password; None: there is nothing by which this user could log in."""
