"""One group of the classic protocol in a world of its own, and short ways to act for its members."""

from exacta.core.commands import Heartbeat, JoinGroup, LeaveGroup, MemberToRemove, SyncGroup
from exacta.core.ids import PrincipalName, Ticket
from exacta.core.rejections import Rejection
from exacta.core.replies import Joined, MembersLeft
from exacta.core.state.classic_membership import Member
from exacta.core.values.classic_groups import Phase
from tests.core.world import World

SESSION_MS, REBALANCE_MS = 100, 300


class Group:
    """A world with one group, and short ways to act for its members."""

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()
        self.world.topic()
        self.tickets = 0

    def phase(self) -> Phase:
        membership = self.world.state.volatile.memberships.get("g")
        return membership.phase if membership is not None else Phase.EMPTY

    @property
    def members(self) -> set[str]:
        return set(self.world.state.volatile.memberships["g"].members)

    def member(self, name: str) -> Member:
        return self.world.state.volatile.memberships["g"].members[name]

    def _ticket(self) -> Ticket:
        self.tickets += 1
        return Ticket(self.tickets)

    def join(
        self,
        name: str,
        protocols: str = "range",
        *,
        known: bool = True,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        instance_id: str | None = None,
        member_id: str | None = None,
        skips: bool = True,
    ) -> tuple[Ticket, object]:
        """Join under an id of our choice: the id a new member is given is the caller's to say."""
        ticket = self._ticket()
        membership = self.world.state.volatile.memberships.get("g")
        if member_id is None:
            member_id = name if membership is not None and name in membership.members else ""
        reply = self.world.send(
            JoinGroup(
                ticket=ticket,
                group_id="g",
                member_id=member_id,
                new_member_id=name,
                client_id="c",
                client_host="h",
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=rebalance_ms,
                protocol_type="consumer",
                protocols=tuple((protocol, f"{name}/{protocol}".encode()) for protocol in protocols.split()),
                knows_member_id_required=not known,
                instance_id=instance_id,
                knows_skip_assignment=skips,
                principal=PrincipalName(f"User:{name}"),
            )
        )
        return ticket, reply

    def joined(self, ticket: Ticket) -> Joined:
        answer = self.world.woken[ticket]
        assert isinstance(answer, Joined), answer
        return answer

    def sync(
        self,
        name: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol: str | None = None,
    ) -> tuple[Ticket, object]:
        command = SyncGroup(
            ticket=self._ticket(),
            group_id="g",
            member_id=name,
            generation=generation,
            assignments=tuple((assignments or {}).items()),
            instance_id=instance_id,
            protocol=protocol,
        )
        return command.ticket, self.world.send(command)

    def heartbeat(self, name: str, generation: int, *, instance_id: str | None = None) -> object:
        command = Heartbeat(group_id="g", member_id=name, generation=generation, instance_id=instance_id)
        return self.world.send(command)

    def leave(self, *names: str, instances: tuple[str, ...] = ()) -> list[Rejection | None]:
        """Let members go, by their ids and by their instance ids alone."""
        members = [MemberToRemove(member_id=name) for name in names]
        members += [MemberToRemove(instance_id=name) for name in instances]
        left = self.world.send(LeaveGroup(group_id="g", members=tuple(members)))
        assert isinstance(left, MembersLeft), left
        return list(left.rejections)

    def stable(self, *names: str) -> int:
        """Bring the named members into a stable group; return the generation. The first is the leader."""
        tickets = {name: self.join(name)[0] for name in names}
        for name in names[:-1]:  # who was in before is asked to join again
            if tickets[name] in self.world.woken and len(names) > 1:
                tickets[name] = self.join(name)[0]
        generation = self.joined(tickets[names[0]]).generation
        for name in names[1:]:
            self.sync(name, generation)
        self.sync(names[0], generation, {name: name.encode() for name in names})
        assert self.phase() is Phase.STABLE
        return generation
