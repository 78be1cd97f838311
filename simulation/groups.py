"""Keeps what members of groups have been told, over all lives of the broker.

Owns two rules of decisions 0025 and 0012. What a member was told of a finished rebalance (in the consumer protocol: of
anything) outlives the broker, and a restart goes on from there. And a generation that anybody was told of is never
begun a second time.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from exacta.core.commands import Command, ConsumerHeartbeat, JoinGroup, SyncGroup
from exacta.core.events import ConsumerGroupUpdated, Event, GroupDeleted, GroupSettled, MembershipChanged
from exacta.core.groups.consumer_updates import updated
from exacta.core.replies import ConsumerHeartbeatDone, Joined, Synced
from exacta.core.state.classic_membership import Membership
from exacta.core.state.consumer_membership import ConsumerGroup
from exacta.core.state.state import State
from exacta.core.values.classic_groups import Phase

Complain = Callable[[str], None]
Done = Callable[..., None]


class GroupsTold:
    """Generations by group: those that anybody was told of, and the last in which anybody was given an assignment."""

    def __init__(self) -> None:
        self._joined: dict[str, set[int]] = {}
        self._synced: dict[str, int] = {}
        self._epochs: dict[tuple[str, str], int] = {}
        self._deletions: Counter[str] = Counter()

    def listening(self, commands: Sequence[Command], done: Done) -> Done:
        """Return `done`, and note what it tells."""
        asked = commands[0]
        if not isinstance(asked, JoinGroup | SyncGroup | ConsumerHeartbeat):
            return done

        deletions = self._deletions[asked.group_id]

        def told(answers: list[object]) -> None:
            [answer] = answers
            if self._deletions[asked.group_id] != deletions:
                pass  # it is told late, of the group that was deleted
            elif isinstance(answer, Joined) and not answer.leader:
                # It speaks the classic protocol in a group of the other one: its generation is its epoch.
                key = asked.group_id, answer.member_id
                self._epochs[key] = max(answer.generation, self._epochs.get(key, 0))
            elif isinstance(answer, Joined):
                self._joined.setdefault(asked.group_id, set()).add(answer.generation)
            elif isinstance(asked, SyncGroup) and isinstance(answer, Synced):
                last = max(asked.generation, self._synced.get(asked.group_id, 0))
                self._synced[asked.group_id] = last
            elif isinstance(answer, ConsumerHeartbeatDone):
                key = asked.group_id, answer.member_id
                self._epochs[key] = max(answer.member_epoch, self._epochs.get(key, 0))
            done(answers)

        return told

    def decided(self, state: State, event: Event, complain: Complain) -> None:
        """Look at an event that is about to be applied."""
        if isinstance(event, GroupDeleted):
            # Another group of the same name gives out member ids of its own, and may count from 1 (decision 0012).
            self._synced.pop(event.group_id, None)
            self._joined.pop(event.group_id, None)
            self._deletions[event.group_id] += 1
        if not isinstance(event, MembershipChanged) or event.membership.phase is not Phase.COMPLETING_REBALANCE:
            return
        group_id, generation = event.group_id, event.membership.generation
        before = state.volatile.memberships.get(group_id)
        begins = before is None or before.generation != generation
        if begins and generation in self._joined.get(group_id, ()):
            complain(f"groups: generation {generation} of {group_id} is begun a second time")

    def recovered(self, state: State, events: Sequence[Event], complain: Complain) -> None:
        """Compare the groups of a broker that has just started with what was told, and with what is in the journal."""
        settled: dict[str, Membership] = {}
        latest: dict[str, int] = {}
        consumers: dict[str, ConsumerGroup] = {}
        epochs: dict[tuple[str, str], int] = {}
        for event in events:
            if isinstance(event, GroupSettled):
                settled.pop(event.group_id, None)
                if event.membership is not None:
                    consumers.pop(event.group_id, None)  # a group moves from the one protocol to the other
                    settled[event.group_id] = event.membership
                    latest[event.group_id] = event.membership.generation
            elif isinstance(event, ConsumerGroupUpdated):
                settled.pop(event.group_id, None)
                latest[event.group_id] = max(event.epoch, latest.get(event.group_id, 0))
                consumers[event.group_id] = updated(consumers.get(event.group_id), event)
                if not consumers[event.group_id].members:
                    del consumers[event.group_id]
                for member in event.members:
                    key = event.group_id, member.member_id
                    epochs[key] = max(member.epoch, epochs.get(key, 0))
            elif isinstance(event, GroupDeleted):
                settled.pop(event.group_id, None)
        for group_id, told in self._synced.items():
            if latest.get(group_id, 0) < told:
                complain(f"groups: members of {group_id} were told of generation {told}, which is forgotten")
        for key, told in self._epochs.items():
            if epochs.get(key, 0) < told:
                complain(f"groups: members of {key[0]} were told of epoch {told}, which is forgotten")
        if state.volatile.consumer_groups != consumers:
            complain(f"groups: there are {state.volatile.consumer_groups}, and there were {consumers}")
        if state.volatile.memberships != settled:
            complain(f"groups: there are {state.volatile.memberships}, and there were {settled}")
