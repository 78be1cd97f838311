"""Access rules come, and go where filters match them (KIP-290)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from exacta.core.commands import CreateAcls, DeleteAcls
from exacta.core.events import AclsCreated, AclsDeleted
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, AclsDeletedReply
from exacta.core.snapshot import restore, snapshot
from exacta.core.values.acl import Acl, AclFilter, Pattern, PatternFilter, ResourceKind, problem_of
from simulation.invariants.access import rules_are_those_that_were_made
from tests.core.access.values import ACLS, ALICE, BOB, FILTERS, acl
from tests.core.world import SMALL, World
from tests.shares import examples

A, PREFIX, ALL_TOPICS = acl(), acl(pattern=Pattern.PREFIXED), acl(name="*")
OF_BOB, GROUP = acl(principal=BOB, allows=False), acl(kind=ResourceKind.GROUP)
RULES = (A, PREFIX, ALL_TOPICS, OF_BOB, GROUP)


def create(world: World, *acls: Acl) -> None:
    assert world.send(CreateAcls(acls=acls)) == DONE
    world.check()


def test_a_rule_is_there_once(world: World) -> None:
    create(world, A, PREFIX, A)
    create(world, PREFIX, OF_BOB)
    assert [each.acls for each in world.log if isinstance(each, AclsCreated)] == [(A, PREFIX), (OF_BOB,)]
    length = len(world.log)
    create(world, A)
    assert len(world.log) == length


def test_rules_are_durable_and_so_is_their_order(world: World) -> None:
    create(world, *RULES)
    restored = restore(snapshot(world.state), SMALL)
    assert list(restored.acls) == list(RULES)
    assert restored.volatile.acl_index.kinds == world.state.volatile.acl_index.kinds
    world.crash()
    world.check()
    assert list(world.state.acls) == list(RULES)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclFilter(), RULES),
        (AclFilter(kind=ResourceKind.GROUP), (GROUP,)),
        (AclFilter(name="a"), (A, PREFIX, OF_BOB, GROUP)),
        (AclFilter(kind=ResourceKind.TOPIC, name="a"), (A, OF_BOB, PREFIX)),
        (AclFilter(kind=ResourceKind.TOPIC, name="a", pattern=PatternFilter.LITERAL), (A, OF_BOB)),
        (AclFilter(pattern=PatternFilter.PREFIXED), (PREFIX,)),
        (AclFilter(kind=ResourceKind.TOPIC, name="ab", pattern=PatternFilter.MATCH), (ALL_TOPICS, PREFIX)),
        (AclFilter(name="ab", pattern=PatternFilter.MATCH), (PREFIX, ALL_TOPICS)),
        (AclFilter(kind=ResourceKind.TOPIC, name="*", pattern=PatternFilter.LITERAL), (ALL_TOPICS,)),
        (AclFilter(principal=BOB), (OF_BOB,)),
        (AclFilter(allows=True, kind=ResourceKind.TOPIC, principal=ALICE), (A, PREFIX, ALL_TOPICS)),
        (AclFilter(host="10.0.0.1"), ()),
    ],
)
def test_a_filter_deletes_what_it_matches(world: World, wanted: AclFilter, found: tuple[Acl, ...]) -> None:
    create(world, *RULES)
    assert world.send(DeleteAcls(filters=(wanted,))) == AclsDeletedReply(deleted=(found,))
    world.check()
    assert set(world.state.acls) == set(RULES) - set(found)


def test_a_rule_that_two_filters_match_is_told_twice_and_deleted_once(world: World) -> None:
    create(world, *RULES)
    either = AclFilter(principal=BOB)
    assert world.send(DeleteAcls(filters=(either, either))) == AclsDeletedReply(deleted=((OF_BOB,), (OF_BOB,)))
    assert [each.acls for each in world.log if isinstance(each, AclsDeleted)] == [(OF_BOB,)]


def test_more_than_one_event_shall_hold_are_not_deleted() -> None:
    world = World(replace(SMALL, max_acls_deleted_at_once=2))
    create(world, *RULES)
    assert world.send(DeleteAcls(filters=(AclFilter(name="a"),))) is Rejection.LIMIT_REACHED
    assert len(world.state.acls) == len(RULES)
    assert world.send(DeleteAcls(filters=(AclFilter(principal=BOB),))) == AclsDeletedReply(deleted=((OF_BOB,),))


@settings(max_examples=examples(1_000), deadline=None)
@given(acls=st.lists(ACLS, max_size=10, unique=True), wanted=FILTERS)
def test_the_short_way_to_a_name_finds_what_the_long_way_finds(acls: list[Acl], wanted: AclFilter) -> None:
    world = World()
    create(world, *acls)
    answer = world.send(DeleteAcls(filters=(wanted,)))
    assert isinstance(answer, AclsDeletedReply)
    (deleted,) = answer.deleted
    assert len({*deleted}) == len(deleted)
    assert {*deleted} == {each for each in acls if wanted.matches(each)}
    world.check()


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (acl(name=""), "name of the resource is empty"),
        (acl(kind=ResourceKind.CLUSTER), "kafka-cluster"),
        (acl(principal="alice"), "User:alice"),
        (acl(principal="User:"), "User:alice"),
        (acl(principal=":alice"), "User:alice"),
        (acl(host=""), "host"),
    ],
)
def test_a_rule_that_cannot_be(wrong: Acl, problem: str) -> None:
    assert problem in (problem_of(wrong) or "")


def test_rules_that_can_be() -> None:
    for each in (*RULES, acl(kind=ResourceKind.CLUSTER, name="kafka-cluster"), acl(principal="User:CN=a:b, O=c")):
        assert problem_of(each) is None


@pytest.mark.parametrize("found", [(), (A,), (PREFIX, A), (A, PREFIX, OF_BOB)])
def test_the_invariant_sees_other_rules_than_those_that_were_made(world: World, found: tuple[Acl, ...]) -> None:
    create(world, A, PREFIX, OF_BOB)
    world.send(DeleteAcls(filters=(AclFilter(principal=BOB),)))
    world.state.acls = dict.fromkeys(found)
    assert any("access: the rules are" in each for each in rules_are_those_that_were_made(world.state, world.log))


def test_the_invariant_sees_an_index_of_other_rules(world: World) -> None:
    create(world, A, OF_BOB)
    world.state.volatile.acl_index.remove(OF_BOB)
    assert any("the index has 1 rules of 2" in each for each in rules_are_those_that_were_made(world.state, world.log))
