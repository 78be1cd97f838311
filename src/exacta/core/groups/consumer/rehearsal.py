"""A heartbeat that assigns many partitions is decided beside the state first, on a thread.

Owns the copy of what such a decision looks at, and the question whether that is still so. Owns no rule: `heartbeat`
decides, here as there.

Theory of operation. To match forty thousand topics, to assign and to compare them takes some tenths of a second, in
which a broker would serve nobody. So a heartbeat may be decided on a `Scene`: groups and members are frozen data, and
the topics are copied. Afterwards the command comes to the state with the outcome. It is taken if nothing that the
decision has looked at has changed, and otherwise decided again.
"""

from msgspec import Struct

from exacta.core.commands import ConsumerHeartbeat
from exacta.core.groups.consumer.subscriptions import topics_version
from exacta.core.outcome import Outcome
from exacta.core.state.classic_membership import NOBODY
from exacta.core.state.consumer_membership import ConsumerGroup
from exacta.core.state.state import State, Volatile
from exacta.core.values.classic_groups import Phase

MOST_AT_ONCE = 1_000
"""A heartbeat that looks at more topics, or partitions, is worth a rehearsal."""


class _Seen(Struct, frozen=True):
    """The facts that a decision has looked at, besides groups, which are compared by identity."""

    epochs: tuple[int, int, int]
    has_recovered: bool


class Scene:
    """The part of the state that a heartbeat of one group looks at, as it is now."""

    def __init__(self, state: State, group_id: str) -> None:
        """Copy it; the caller is the thread that changes the state."""
        volatile = state.volatile
        self._group_id = group_id
        self._group = volatile.consumer_groups.get(group_id)
        self._settled = state.settled_consumers.get(group_id)
        self._seen = _seen(state)
        self._state = State(
            limits=state.limits,
            topics=state.topics.copy(),
            next_partition_id=state.next_partition_id,
            reserved_group_epoch=state.reserved_group_epoch,
            settled_consumers={} if self._settled is None else {group_id: self._settled},
            volatile=Volatile(
                consumer_groups={} if self._group is None else {group_id: self._group},
                has_recovered=volatile.has_recovered,
                least_group_epoch=volatile.least_group_epoch,
                first_group_epoch=volatile.first_group_epoch,
            ),
        )

    @property
    def state(self) -> State:
        """The state on which the heartbeat is rehearsed; on any thread, since nobody changes it."""
        return self._state

    def is_as_it_was(self, state: State) -> bool:
        """Return whether the same heartbeat would be decided alike now, or would have been before topics came."""
        return (
            state.volatile.consumer_groups.get(self._group_id) is self._group
            and state.settled_consumers.get(self._group_id) is self._settled
            and state.volatile.memberships.get(self._group_id, NOBODY).phase is Phase.EMPTY
            and state.limits == self._state.limits
            and _seen(state) == self._seen
            and self._has_its_topics(state)
        )

    def _has_its_topics(self, state: State) -> bool:
        was = self._state
        return topics_version(was) == topics_version(state) or was.topics.keys() <= state.topics.keys()


class Rehearsed(Struct, frozen=True):
    """A heartbeat's outcome on a scene."""

    scene: Scene
    outcome: Outcome


def scene_of(state: State, command: ConsumerHeartbeat) -> Scene | None:
    """Return the scene on which a heartbeat should be rehearsed; None: it is short, or concerns a classic group."""
    if command.leaves or state.volatile.memberships.get(command.group_id, NOBODY).phase is not Phase.EMPTY:
        return None
    group = state.volatile.consumer_groups.get(command.group_id)
    if _size(state, command, group) <= MOST_AT_ONCE or (group is not None and _is_steady(state, command, group)):
        return None
    return Scene(state, command.group_id)


def _seen(state: State) -> _Seen:
    volatile = state.volatile
    epochs = (state.reserved_group_epoch, volatile.least_group_epoch, volatile.first_group_epoch)
    return _Seen(epochs, volatile.has_recovered)


def _size(state: State, command: ConsumerHeartbeat, group: ConsumerGroup | None) -> int:
    """Return how many topics or partitions the decision looks at, at least."""
    size = 0 if group is None else len(group.topics) + sum(map(len, group.target.values()))
    if command.pattern or (group is not None and group.matched):
        size += len(state.topics)
    named = (state.topics.get(name) for name in command.topics or ())
    return size + sum(1 if topic is None else topic.partition_count for topic in named)


def _is_steady(state: State, command: ConsumerHeartbeat, group: ConsumerGroup) -> bool:
    """Return whether the heartbeat only extends a session: the member has what it shall have, and nothing is new."""
    member = group.members.get(command.member_id)
    is_known = member is not None and member.epoch == command.member_epoch and group.is_reconciled(member)
    says_nothing = command.topics is None and command.pattern is None
    is_current = group.topics_version == topics_version(state) and group.epoch == group.target_epoch
    return is_known and says_nothing and is_current
