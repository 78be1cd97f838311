"""What may be gone after a change, and who leaves a group: the tables of the docstring, for both kinds of groups."""

import pytest

from exacta.core.access.revocation import may_revoke
from exacta.core.commands import CreateAcls, DeleteAcls, RevokeMemberships
from exacta.core.events import AclsCreated, AclsDeleted, Event, ScramKeysSet
from exacta.core.ids import PrincipalName
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.core.values.acl import Acl, AclFilter, Operation, Pattern, ResourceKind, Terms
from exacta.core.values.classic_groups import Phase
from tests.core.access.values import acl
from tests.core.groups.classic.members import Group
from tests.core.groups.consumer.members import Consumer
from tests.core.world import World
from tests.docstring_tables import docstring_table

MODULE = "exacta.core.access.revocation"
CHANGES = docstring_table(MODULE, "event \\ what has no rule")
MEMBERS = docstring_table(MODULE, "a member \\ its login")
ALLOWS, DENIES = acl(), acl(allows=False)
EVENTS: dict[str, list[Event]] = {
    "a rule allows": [AclsCreated(acls=(ALLOWS,))],
    "one that allows is gone": [AclsDeleted(acls=(ALLOWS,)), AclsDeleted(acls=(DENIES, ALLOWS))],
    "a rule denies": [AclsCreated(acls=(DENIES,)), AclsCreated(acls=(ALLOWS, DENIES))],
    "one that denies is gone": [AclsDeleted(acls=(DENIES,))],
    "keys of a user are set": [ScramKeysSet(user="alice", keys=())],
}
TERMS = {"is closed": Terms(), "is open": Terms(allow_everyone=True), "there are no rules": None}
WHO = PrincipalName("User:a")


def reads(principal: str = "User:a", host: str = "*", *, allows: bool = True) -> Acl:
    kind, operation = ResourceKind.GROUP, Operation.READ
    return Acl(kind, "g", Pattern.LITERAL, PrincipalName(principal), host, operation, allows)


@pytest.mark.parametrize(("row", "terms", "cell"), CHANGES.cells())
def test_a_change_may_take_away_what_the_table_says(row: str, terms: str, cell: str) -> None:
    for event in EVENTS[row]:
        assert may_revoke(event, TERMS[terms]) is (cell != "-"), event


def revoke(world: World, *revoked: PrincipalName, terms: Terms | None) -> None:
    command = RevokeMemberships(group_id="g", revoked=frozenset(revoked), terms=terms)
    assert world.send(command) == DONE
    world.check()


@pytest.mark.parametrize("kind", ["classic", "consumer"])
@pytest.mark.parametrize(("row", "login", "cell"), MEMBERS.cells())
def test_a_member_leaves_when_the_table_says(row: str, login: str, cell: str, kind: str) -> None:
    """`b` may always read the group, and stays."""
    world = World()
    world.send(CreateAcls(acls=(reads("User:b"), *((reads(),) if row == "may read the group" else ()))))
    if kind == "classic":
        Group(world).stable("a", "b")
    else:
        world.topic()
        for name in ("a", "b"):
            Consumer(world, name, "t").join()
    terms = {"there are no rules": None, "is a super user": Terms(super_users=frozenset({WHO}))}.get(row, Terms())
    revoke(world, *((WHO,) if login == "was revoked" else ()), terms=terms)
    volatile = world.state.volatile
    found = volatile.consumer_groups["g"] if kind == "consumer" else volatile.memberships["g"]
    assert found.members.keys() == ({"b"} if cell == "leaves" else {"a", "b"})


def test_who_waits_to_join_or_for_an_assignment_is_told_at_once() -> None:
    group = Group()
    world = group.world
    world.send(CreateAcls(acls=(reads("User:*"),)))
    generation = group.stable("a")
    waiting, _ = group.join("b")
    world.send(DeleteAcls(filters=(AclFilter(),)))
    world.send(CreateAcls(acls=(reads("User:a"),)))
    revoke(world, terms=Terms())
    assert world.woken.pop(waiting) is Rejection.MEMBERSHIP_REVOKED
    assert group.members == {"a"}
    group.join("a")
    generation += 1
    waiting, _ = group.join("b")
    joined, _ = group.join("a")
    generation = group.joined(joined).generation
    syncing, _ = group.sync("b", generation)
    revoke(world, terms=Terms())
    assert world.woken.pop(syncing) is Rejection.MEMBERSHIP_REVOKED
    assert group.members == {"a"}
    assert group.phase() is Phase.PREPARING_REBALANCE


def test_a_rule_for_an_address_counts_for_a_member_from_there() -> None:
    group = Group()
    group.stable("a")
    host = group.member("a").client_host
    group.world.send(CreateAcls(acls=(reads(host=host),)))
    revoke(group.world, terms=Terms())
    assert group.members == {"a"}
    group.world.send(CreateAcls(acls=(reads(host=host, allows=False),)))
    revoke(group.world, terms=Terms())
    assert group.members == set()


def test_nothing_is_written_where_nobody_leaves() -> None:
    group = Group()
    group.stable("a")
    length = len(group.world.log)
    revoke(group.world, terms=None)
    command = RevokeMemberships(group_id="another", revoked=frozenset({WHO}), terms=Terms())
    assert group.world.send(command) == DONE
    assert len(group.world.log) == length
