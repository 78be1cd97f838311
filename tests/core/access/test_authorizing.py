"""What access rules say, by examples, and the whole sweep against the slow look at every rule."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exacta.core.access.authorizing import allows, allows_any
from exacta.core.commands import CreateAcls, DeleteAcls
from exacta.core.ids import PrincipalName
from exacta.core.state.state import State
from exacta.core.values.acl import Acl, AclFilter, Operation, Pattern, PatternFilter, ResourceKind
from simulation.invariants.access import answer
from tests.core.access.values import ACLS, ALICE, ANYBODY, BOB, HOSTS, KINDS, NAMES, OPERATIONS, acl
from tests.core.world import World
from tests.shares import examples

HOST = HOSTS[1]
READ, WRITE, DESCRIBE, ALL = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL
TOPIC = ResourceKind.TOPIC


def with_rules(*acls: Acl) -> State:
    world = World()
    world.send(CreateAcls(acls=acls))
    return world.state


def may(
    state: State, operation: Operation, name: str = "a", principal: PrincipalName = ALICE, host: str = HOST
) -> bool:
    return allows(state, principal, host, operation, TOPIC, name, by_default=False)


@pytest.mark.parametrize(
    ("rules", "operation", "name", "allowed"),
    [
        ([], READ, "a", False),
        ([acl()], READ, "a", True),
        ([acl()], READ, "ab", False),
        ([acl()], WRITE, "a", False),
        ([acl(name="*")], READ, "whatever", True),
        ([acl(name="a", pattern=Pattern.PREFIXED)], READ, "ab", True),
        ([acl(name="a", pattern=Pattern.PREFIXED)], READ, "ba", False),
        ([acl(operation=ALL)], WRITE, "a", True),
        ([acl(principal=BOB)], READ, "a", False),
        ([acl(principal=ANYBODY)], READ, "a", True),
        ([acl(principal=PrincipalName("Group:*"))], READ, "a", False),
        ([acl(host=HOST)], READ, "a", True),
        ([acl(host="10.0.0.9")], READ, "a", False),
        ([acl(kind=ResourceKind.GROUP)], READ, "a", False),
        ([acl(name="*"), acl(allows=False)], READ, "a", False),
        ([acl(), acl(name="*", allows=False, principal=ANYBODY)], READ, "a", False),
        ([acl(), acl(allows=False, host="10.0.0.9")], READ, "a", True),
        ([acl(), acl(allows=False, operation=ALL)], DESCRIBE, "a", False),
    ],
)
def test_one_question(rules: list[Acl], operation: Operation, name: str, allowed: bool) -> None:
    assert may(with_rules(*rules), operation, name) is allowed


def test_what_is_allowed_implies_what_it_needs_and_what_is_denied_implies_nothing() -> None:
    for operation in Operation:
        implies = {
            Operation.DESCRIBE: operation in (READ, WRITE, Operation.DELETE, Operation.ALTER, DESCRIBE, ALL),
            Operation.DESCRIBE_CONFIGS: operation
            in (Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS, Operation.ALL),
        }
        allowed, denied = (
            with_rules(acl(operation=operation)),
            with_rules(acl(operation=ALL), acl(operation=operation, allows=False)),
        )
        for asked in Operation:
            if asked is ALL:
                continue
            assert may(allowed, asked) is implies.get(asked, operation in (asked, ALL)), (operation, asked)
            assert may(denied, asked) is (operation not in (asked, ALL)), (operation, asked)


def test_a_name_without_rules_is_answered_by_default_and_one_with_somebodys_rule_is_not() -> None:
    state = with_rules(acl(principal=BOB), acl(name="p", pattern=Pattern.PREFIXED, principal=BOB))
    for name, by_default in (("z", True), ("a", False), ("px", False)):
        assert allows(state, ALICE, HOST, READ, TOPIC, name, by_default=True) is by_default
        assert not allows(state, ALICE, HOST, READ, TOPIC, name, by_default=False)


@settings(max_examples=examples(2_000), deadline=None)
@given(
    acls=st.lists(ACLS, max_size=12, unique=True),
    gone=st.integers(0, 3),
    who=st.sampled_from((ALICE, BOB)),
    host=st.sampled_from(HOSTS[1:]),
    by_default=st.booleans(),
)
def test_the_index_answers_as_a_look_at_every_rule(
    acls: list[Acl], gone: int, who: PrincipalName, host: str, by_default: bool
) -> None:
    world = World()
    world.send(CreateAcls(acls=tuple(acls)))
    for each in acls[:gone]:
        world.send(DeleteAcls(filters=(exactly(each),)))
    assert list(world.state.acls) == acls[gone:]
    for kind in KINDS:
        for name in (*NAMES, "abcd", "zz"):
            for operation in OPERATIONS[:-1]:
                expected = answer(acls[gone:], who, host, operation, kind, name, by_default=by_default)
                assert allows(world.state, who, host, operation, kind, name, by_default) is expected


def exactly(each: Acl) -> AclFilter:
    return AclFilter(
        each.kind, each.name, PatternFilter(each.pattern.value), each.principal, each.host, each.operation, each.allows
    )


# --- any resource -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([], False),
        ([acl()], True),
        ([acl(name="*")], True),
        ([acl(name="a", pattern=Pattern.PREFIXED)], True),
        ([acl(operation=ALL)], True),
        ([acl(operation=WRITE)], False),
        ([acl(principal=BOB)], False),
        ([acl(), acl(allows=False)], False),
        ([acl(), acl(principal=ANYBODY, operation=ALL, allows=False)], False),
        ([acl(name="ab"), acl(name="a", pattern=Pattern.PREFIXED, allows=False)], False),
        ([acl(name="ab"), acl(name="a", allows=False)], True),
        ([acl(name="ab", pattern=Pattern.PREFIXED), acl(name="ab", allows=False)], True),
        ([acl(name="ab", pattern=Pattern.PREFIXED), acl(name="ab", pattern=Pattern.PREFIXED, allows=False)], False),
        ([acl(name="a", pattern=Pattern.PREFIXED), acl(name="ab", pattern=Pattern.PREFIXED, allows=False)], True),
        ([acl(), acl(name="*", allows=False)], False),
        ([acl(name="*"), acl(name="hardcode", allows=False)], True),
        ([acl(), acl(allows=False, host="10.0.0.9")], True),
    ],
)
def test_any_resource(rules: list[Acl], allowed: bool) -> None:
    assert allows_any(with_rules(*rules), ALICE, HOST, READ, TOPIC, by_default=False) is allowed


def any_of(
    acls: list[Acl], who: PrincipalName, host: str, operation: Operation, kind: ResourceKind, by_default: bool
) -> bool:
    """Answer as `authorizeByResourceType` of Apache Kafka does, step by step."""
    if answer(acls, who, host, operation, kind, "hardcode", by_default=by_default):
        return True
    fitting = [
        each
        for each in acls
        if each.kind is kind
        and each.principal in (who, ANYBODY)
        and each.host in (host, "*")
        and each.operation in (operation, ALL)
    ]
    denied = {(each.pattern, each.name) for each in fitting if not each.allows}
    allowed = {(each.pattern, each.name) for each in fitting if each.allows}
    if (Pattern.LITERAL, "*") in denied:
        return False
    if (Pattern.LITERAL, "*") in allowed:
        return True
    for pattern, name in allowed:
        if pattern is Pattern.LITERAL and (pattern, name) in denied:
            continue
        if not any((Pattern.PREFIXED, name[:end]) in denied for end in range(1, len(name) + 1)):
            return True
    return False


@settings(max_examples=examples(2_000), deadline=None)
@given(acls=st.lists(ACLS, max_size=12, unique=True), host=st.sampled_from(HOSTS[1:]), by_default=st.booleans())
def test_any_resource_is_answered_as_by_a_look_at_every_rule(acls: list[Acl], host: str, by_default: bool) -> None:
    state = with_rules(*acls)
    for who in (ALICE, BOB):
        for kind in KINDS:
            for operation in OPERATIONS[:-1]:
                expected = any_of(acls, who, host, operation, kind, by_default)
                assert allows_any(state, who, host, operation, kind, by_default) is expected
