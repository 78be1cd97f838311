"""The authorizer of access rules: super users first, then what the rules of this step say."""

import pytest

from exacta.config.options import configure
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.core.commands import CreateAcls, DeleteAcls
from exacta.core.values.acl import AclFilter, Operation, Pattern, ResourceKind
from exacta.engine.present_state import PresentState
from exacta.ports.authorizer import ANONYMOUS, CLUSTER, AllowAll, Principal, Resource
from exacta.security import authorizer
from exacta.security.authorizer import AclAuthorizer, authorizer_of
from tests.core.access.values import acl
from tests.core.world import World

ALICE, BOB = Principal(name="alice"), Principal(name="bob")
A, ANY = Resource(ResourceKind.TOPIC, "a"), Resource(ResourceKind.TOPIC, "", Pattern.ANY)
READ, WRITE = Operation.READ, Operation.WRITE
HOST = "10.0.0.1"


@pytest.fixture
def world() -> World:
    return World()


def over(world: World, *super_users: str, allow_everyone: bool = False) -> AclAuthorizer:
    return AclAuthorizer(PresentState(world.state), frozenset(super_users), allow_everyone=allow_everyone)


def test_what_no_rule_allows_is_denied(world: World) -> None:
    asked = over(world)
    assert not asked.allows_all
    assert not asked.allows(ALICE, HOST, READ, A)
    assert not asked.allows(ALICE, HOST, READ, ANY)
    assert not asked.allows(ALICE, HOST, Operation.ALTER, CLUSTER)


def test_a_rule_holds_from_the_step_in_which_it_is_made_to_that_in_which_it_is_deleted(world: World) -> None:
    asked = over(world)
    for _ in range(2):
        for resource in (A, ANY):
            assert not asked.allows(ALICE, HOST, READ, resource)
        world.send(CreateAcls(acls=(acl(),)))
        for resource in (A, ANY):
            assert asked.allows(ALICE, HOST, READ, resource)
            assert not asked.allows(BOB, HOST, READ, resource)
            assert not asked.allows(ALICE, HOST, WRITE, resource)
        world.send(DeleteAcls(filters=(AclFilter(),)))


def test_who_has_not_logged_in_is_a_user_of_that_name(world: World) -> None:
    world.send(CreateAcls(acls=(acl(principal="User:ANONYMOUS"),)))
    assert over(world).allows(ANONYMOUS, HOST, READ, A)


def test_a_super_user_may_do_what_is_denied(world: World) -> None:
    world.send(CreateAcls(acls=(acl(name="*", principal="User:*", operation=Operation.ALL, allows=False),)))
    asked = over(world, "User:alice", allow_everyone=True)
    for resource in (A, ANY):
        assert asked.allows(ALICE, HOST, READ, resource)
        assert not asked.allows(BOB, HOST, READ, resource)
    assert not asked.allows(Principal("Group", "alice"), HOST, READ, A)


def test_everybody_may_use_what_nobody_has_written_a_rule_for(world: World) -> None:
    world.send(CreateAcls(acls=(acl(),)))
    asked = over(world, allow_everyone=True)
    assert asked.allows(BOB, HOST, READ, Resource(ResourceKind.TOPIC, "b"))
    assert asked.allows(BOB, HOST, READ, ANY)
    assert not asked.allows(BOB, HOST, READ, A)


def test_answers_that_are_remembered_stay_few(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorizer, "MOST_REMEMBERED", 3)
    asked = over(world)
    for number in range(10):
        assert not asked.allows(ALICE, f"10.0.0.{number}", READ, ANY)
        assert len(asked._any) <= 3


def test_the_options_say_which_authorizer_there_is(world: World) -> None:
    rules = PresentState(world.state)
    assert isinstance(authorizer_of(configure({}), rules), AllowAll)
    asked = authorizer_of(
        configure({"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": " User:alice ; User:CN=b, O=c "}), rules
    )
    assert isinstance(asked, AclAuthorizer)
    assert asked.allows(ALICE, HOST, READ, A)
    assert asked.allows(Principal(name="CN=b, O=c"), HOST, READ, A)
    assert not asked.allows(BOB, HOST, READ, A)
