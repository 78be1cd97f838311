"""The first user is made while there is none, with the rules that allow everything: the table of its module."""

import pytest

from exacta.core.access.first_user import rules_of
from exacta.core.commands import AlterScramKeys, CreateAcls, MakeFirstUser
from exacta.core.events import AclsCreated, ScramKeysSet
from exacta.core.rejections import Rejection
from exacta.core.replies import ScramKeysAltered
from exacta.core.values.acl import CLUSTER_NAME, Operation, ResourceKind
from exacta.core.values.scram import ScramAlteration, ScramMechanism
from simulation.invariants.access import who_got_every_right_at_once_was_the_first_user
from tests.core.access.values import alteration, key
from tests.core.world import World
from tests.docstring_tables import docstring_table

TABLE = docstring_table("exacta.core.access.first_user", "users in the log")
ONE = (alteration("admin"),)
ALTERATIONS: dict[str, list[tuple[ScramAlteration, ...]]] = {
    "a key of one user": [ONE],
    "anything else": [
        (),
        (*ONE, alteration("other")),
        (*ONE, *ONE),
        (ScramAlteration("admin", ScramMechanism.SCRAM_SHA_256),),
        (ScramAlteration("admin", None),),
        (*ONE, ScramAlteration("u", ScramMechanism.SCRAM_SHA_256)),
    ],
}


@pytest.mark.parametrize(("users", "asked", "cell"), TABLE.cells())
def test_every_cell(world: World, users: str, asked: str, cell: str) -> None:
    if users == "some":
        world.send(AlterScramKeys(alterations=(alteration("u"),)))
    for alterations in ALTERATIONS[asked]:
        length = len(world.log)
        answer = world.send(MakeFirstUser(alterations=alterations))
        world.check()
        if cell == "NOT_THE_FIRST_USER":
            assert (answer, len(world.log)) == (Rejection.NOT_THE_FIRST_USER, length)
        else:
            assert answer == ScramKeysAltered(rejections=(("admin", None),))
            rules, made = world.log[length:]
            assert rules == AclsCreated(acls=rules_of("admin"))
            assert made == ScramKeysSet(user="admin", keys=(key(),))


@pytest.mark.parametrize(
    "wrong", [alteration(""), alteration("admin", key(iterations=4_095)), alteration("admin", key(iterations=0))]
)
def test_a_key_with_a_fault_makes_no_rule(world: World, wrong: ScramAlteration) -> None:
    length = len(world.log)
    answer = world.send(MakeFirstUser(alterations=(wrong,)))
    assert answer == ScramKeysAltered(rejections=((wrong.user, Rejection.UNACCEPTABLE_CREDENTIAL),))
    assert len(world.log) == length


def test_rules_that_a_crash_has_kept_alone_are_taken_over(world: World) -> None:
    world.send(CreateAcls(acls=rules_of("admin")[:2]))
    length = len(world.log)
    world.send(MakeFirstUser(alterations=ONE))
    rules, _ = world.log[length:]
    assert rules == AclsCreated(acls=rules_of("admin")[2:])
    assert [*world.state.acls] == [*rules_of("admin")]


def test_the_first_user_may_do_everything_on_every_kind_that_a_request_asks_for() -> None:
    names = {each.kind: each.name for each in rules_of("admin")}
    assert names == {ResourceKind.CLUSTER: CLUSTER_NAME} | dict.fromkeys(
        set(ResourceKind) - {ResourceKind.CLUSTER, ResourceKind.DELEGATION_TOKEN}, "*"
    )
    assert {(each.operation, each.allows, each.principal) for each in rules_of("admin")} == {
        (Operation.ALL, True, "User:admin")
    }


def test_the_invariant_sees_a_first_user_beside_others(world: World) -> None:
    world.send(AlterScramKeys(alterations=(alteration("u"),)))
    world.send(CreateAcls(acls=rules_of("admin")))
    world.send(AlterScramKeys(alterations=(alteration("admin"),)))
    assert list(who_got_every_right_at_once_was_the_first_user(world.state, world.log))
