"""A start over a journal that holds access rules or users: it is refused where nobody would ask them."""

import logging
from pathlib import Path

import pytest

from exacta.config.options import configure
from exacta.config.security import STANDARD_AUTHORIZER
from exacta.core.commands import AlterScramKeys, Command, CreateAcls
from exacta.server.access import require_authorizer
from exacta.server.errors import ServerError
from tests.core.access.values import acl, alteration
from tests.core.world import World

DATA = Path("data")
OFF = configure({})
ON = configure({"authorizer.class.name": STANDARD_AUTHORIZER})
CLOSED = configure({"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:a"})
RULE, USER = CreateAcls(acls=(acl(),)), AlterScramKeys(alterations=(alteration("alice"),))


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    ("commands", "held"),
    [((RULE,), "access rules (1),"), ((USER,), "users (1),"), ((RULE, USER), "access rules (1) and users (1),")],
)
def test_rules_and_users_without_an_authorizer_are_refused_in_a_line(
    world: World, commands: tuple[Command, ...], held: str
) -> None:
    for command in commands:
        world.send(command)
    with pytest.raises(ServerError) as raised:
        require_authorizer(OFF, world.state, DATA)
    (line,) = str(raised.value).splitlines()
    assert line.startswith(f"the journal in data holds {held}")
    assert line.endswith(f"--set authorizer.class.name={STANDARD_AUTHORIZER}")
    require_authorizer(CLOSED, world.state, DATA)


def test_nobody_who_may_make_a_rule_is_told(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "exacta"):
        require_authorizer(OFF, world.state, DATA)
        require_authorizer(CLOSED, world.state, DATA)
        assert not caplog.messages
        require_authorizer(ON, world.state, DATA)
        (line,) = caplog.messages
    assert "set super.users" in line
    world.send(RULE)
    caplog.clear()
    require_authorizer(ON, world.state, DATA)
    assert not caplog.messages
