"""A keeper of access rules, users and quotas: makes and deletes them, and lets a guest try what they say.

`told.py` owns what may be found. Only worlds with a keeper have an authorizer. Everybody there may use what no rule is
written for, so that the rules here are about names that nobody else uses.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, TypeAlias

from exacta.config.security import STANDARD_AUTHORIZER
from exacta.core.access.first_user import rules_of
from exacta.core.ids import PrincipalName
from exacta.core.values.acl import Acl, Operation, Pattern, ResourceKind
from exacta.kafka.acl_words import KINDS, PATTERNS, numbers_of
from exacta.protocol.kafka.acl_numbers import ANY
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from exacta.protocol.kafka.messages.k15_describe_groups import DescribeGroupsRequest
from exacta.protocol.kafka.messages.k29_describe_acls import DescribeAclsRequest
from exacta.protocol.kafka.messages.k30_create_acls import AclCreation, CreateAclsRequest
from exacta.protocol.kafka.messages.k31_delete_acls import DeleteAclsFilter, DeleteAclsRequest
from exacta.protocol.kafka.messages.k50_describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from exacta.protocol.kafka.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from exacta.security.first_user import FIRST_USER
from simulation.chance import dice
from simulation.clients.connection import Disconnected
from simulation.clients.limited import flood, limit, quotas
from simulation.clients.offsets import SETTLED_SECONDS
from simulation.clients.surroundings import Surroundings
from simulation.invariants.access import answer
from simulation.told import AccessTold

_Program: TypeAlias = Callable[[Surroundings, AccessTold], Awaitable[None]]

KEEPER, GUEST = "keeper0", "guest0"
NAMES = ("guarded", "guarded-a", "guarded-ab")
RULES = [
    Acl(ResourceKind.TOPIC, name, pattern, PrincipalName(principal), host, operation, allows)
    for name, pattern, principal, host, operation, allows in itertools.product(
        NAMES,
        (Pattern.LITERAL, Pattern.PREFIXED),
        (f"User:{GUEST}", "User:*"),
        ("*", GUEST, "elsewhere"),
        (Operation.READ, Operation.DESCRIBE, Operation.ALL),
        (True, False),
    )
]
GROUP = "guarded-group"
LEAVES = Acl(ResourceKind.GROUP, GROUP, Pattern.LITERAL, PrincipalName(f"User:{GUEST}"), "*", Operation.READ, False)
"""The rule by which a guest has to leave its group."""
REVOKED_SECONDS = 1.0
"""The time in which what is revoked ends."""
SESSION_MS = 20_000
USERS = ("alice", "bob")
OF_FIRST_USERS = [rule for user in USERS for rule in rules_of(user)]
OF_EVERYBODY = rules_of("*")
"""Rules of a first user are about everything: where they are made, what others use is open by these."""
MECHANISMS = (1, 2)
ITERATIONS = (4_096, 5_000)


def has_keeper(seed: int) -> bool:
    """Return whether the world of this seed has a keeper."""
    return dice(seed, "keeper").random() < 0.15


def has_founder(seed: int) -> bool:
    """Return whether the keeper of this world makes first users, too."""
    return has_keeper(seed) and dice(seed, "founder").random() < 1 / 3


def options_with_a_keeper(seed: int) -> dict[str, Any]:
    """Return the options that a broker needs for a keeper, if the world has one."""
    if not has_keeper(seed):
        return {}
    return {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": f"User:{KEEPER}",
        "allow.everyone.if.no.acl.found": True,
    }


async def keep(here: Surroundings, first: _Program | None = None, more: Sequence[_Program] = ()) -> bool:
    """Change rules and users now and then, and look at them, until the world is over."""
    told = here.history.access = here.history.access or AccessTold()
    await asyncio.sleep(SETTLED_SECONDS)  # of an instance that has crashed something may be under way
    while not here.is_over():
        await here.think(2.0)
        usual = [_create, _create, _delete, _alter, _look, _try, _try, _revoke, limit, flood, *more]
        program = first or here.chance.choice(usual)
        try:
            await program(here, told)
            first = None
        except Disconnected:
            await asyncio.sleep(SETTLED_SECONDS)
    return False


async def keep_and_found(here: Surroundings) -> bool:
    """Do as `keep`; make first users, too."""
    return await keep(here, _open_to_all, [_found, _found, _forget])


async def look_at_rules(here: Surroundings) -> None:
    """Look in the end, where there is a keeper."""
    told = here.history.access
    here.connection.name = KEEPER
    while told is not None:
        try:
            await _look(here, told)
        except Disconnected:
            await asyncio.sleep(SETTLED_SECONDS)
        else:
            return


async def _open_to_all(here: Surroundings, told: AccessTold) -> None:
    await _make(here, told, OF_EVERYBODY)


async def _create(here: Surroundings, told: AccessTold) -> None:
    await _make(here, told, here.chance.sample(RULES, here.chance.choice([1, 1, 3])))


async def _make(here: Surroundings, told: AccessTold, acls: Sequence[Acl]) -> None:
    creations = [
        AclCreation(
            resource_type=KINDS[each.kind],
            resource_name=each.name,
            resource_pattern_type=PATTERNS[each.pattern],
            **numbers_of(each),
        )
        for each in acls
    ]
    changes: dict[Hashable, object] = dict.fromkeys(acls, True)
    told.asks(changes)
    answered = await here.connection.ask(CreateAclsRequest(creations=creations), 3)
    _done(here, told, changes, {each.error_code for each in answered.results})


async def _delete(here: Surroundings, told: AccessTold) -> None:
    name, pattern = here.chance.choice(NAMES), here.chance.choice([None, Pattern.LITERAL, Pattern.PREFIXED])
    changes: dict[Hashable, object] = dict.fromkeys(
        each for each in RULES if each.name == name and pattern in (None, each.pattern)
    )
    told.asks(changes)
    wanted = DeleteAclsFilter(
        resource_type_filter=here.chance.choice([ANY, KINDS[ResourceKind.TOPIC]]),
        resource_name_filter=name,
        pattern_type_filter=ANY if pattern is None else PATTERNS[pattern],
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    answered = await here.connection.ask(DeleteAclsRequest(filters=[wanted]), 3)
    _done(here, told, changes, {each.error_code for each in answered.filter_results})


async def _revoke(here: Surroundings, told: AccessTold) -> None:
    """Let a guest join a group, take its right away, and see that it is no member after a second."""
    await _set(here, told, exists=False)
    here.other_connection.name = GUEST
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        protocol_type="guests",
        protocols=[JoinGroupRequestProtocol(name="any", metadata=b"")],
    )
    joined = await here.other_connection.ask(request, 3, 30.0)
    if joined.error_code != ErrorCode.NONE:
        return  # a member of before, of which nothing was heard, is waited for
    await _set(here, told, exists=True)
    await asyncio.sleep(REVOKED_SECONDS)
    described = await here.connection.ask(DescribeGroupsRequest(groups=[GROUP]), 5)
    if any(each.member_id == joined.member_id for each in described.groups[0].members):
        here.history.refusals.append(f"access: {GUEST} is a member of {GROUP} a second after it may not be")


async def _set(here: Surroundings, told: AccessTold, *, exists: bool) -> None:
    """Make the rule by which a guest leaves its group, or delete it."""
    changes: dict[Hashable, object] = {LEAVES: exists or None}
    told.asks(changes)
    if exists:
        creation = AclCreation(
            resource_type=KINDS[LEAVES.kind],
            resource_name=LEAVES.name,
            resource_pattern_type=PATTERNS[LEAVES.pattern],
            **numbers_of(LEAVES),
        )
        answered = await here.connection.ask(CreateAclsRequest(creations=[creation]), 3)
        _done(here, told, changes, {each.error_code for each in answered.results})
        return
    wanted = DeleteAclsFilter(
        resource_type_filter=KINDS[LEAVES.kind],
        resource_name_filter=LEAVES.name,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    deleted = await here.connection.ask(DeleteAclsRequest(filters=[wanted]), 3)
    _done(here, told, changes, {each.error_code for each in deleted.filter_results})


async def _alter(here: Surroundings, told: AccessTold) -> None:
    chance = here.chance
    user, mechanism = chance.choice(USERS), chance.choice(MECHANISMS)
    iterations = chance.choice([*ITERATIONS, *ITERATIONS, None])
    request = AlterUserScramCredentialsRequest()
    if iterations is None:
        request.deletions.append(ScramCredentialDeletion(name=user, mechanism=mechanism))
    else:
        upsertion = ScramCredentialUpsertion(name=user, mechanism=mechanism, iterations=iterations, salt=b"salt")
        upsertion.salted_password = chance.randbytes(32)
        request.upsertions.append(upsertion)
    changes: dict[Hashable, object] = {(user, mechanism): iterations}
    told.asks(changes)
    answered = await here.connection.ask(request, 0)
    _done(here, told, changes, {each.error_code for each in answered.results} - {ErrorCode.RESOURCE_NOT_FOUND})


async def _found(here: Surroundings, told: AccessTold) -> None:
    """Try to make the first user, as by the token of a start: it must fail where there are users."""
    user, iterations = here.chance.choice(USERS), here.chance.choice(ITERATIONS)
    upsertion = ScramCredentialUpsertion(name=user, mechanism=2, iterations=iterations, salt=b"salt")
    upsertion.salted_password = here.chance.randbytes(32)
    changes: dict[Hashable, object] = {(user, 2): iterations, **dict.fromkeys(rules_of(user), True)}
    told.asks(changes)
    here.other_connection.drop()
    here.other_connection.name = FIRST_USER.name
    try:
        answered = await here.other_connection.ask(AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)
    finally:
        here.other_connection.drop()
    codes = {each.error_code for each in answered.results}
    if codes != {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}:
        _done(here, told, changes, codes)


async def _forget(here: Surroundings, told: AccessTold) -> None:
    """Delete all users, so that a first one may come, and the rules of first users."""
    for user, mechanism in itertools.product(USERS, MECHANISMS):
        request = AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name=user, mechanism=mechanism)])
        changes: dict[Hashable, object] = {(user, mechanism): None}
        told.asks(changes)
        answered = await here.connection.ask(request, 0)
        _done(here, told, changes, {each.error_code for each in answered.results} - {ErrorCode.RESOURCE_NOT_FOUND})
    gone: dict[Hashable, object] = dict.fromkeys(OF_FIRST_USERS)
    told.asks(gone)
    filters = [
        DeleteAclsFilter(
            resource_type_filter=KINDS[each.kind],
            resource_name_filter=each.name,
            pattern_type_filter=PATTERNS[each.pattern],
            principal_filter=each.principal,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        for each in OF_FIRST_USERS
    ]
    answered = await here.connection.ask(DeleteAclsRequest(filters=filters), 3)
    _done(here, told, gone, {each.error_code for each in answered.filter_results})


def _done(here: Surroundings, told: AccessTold, changes: dict[Hashable, object], codes: set[int]) -> None:
    if codes - {ErrorCode.NONE}:
        here.history.refusals.append(f"refused: {changes}: {codes}")
    else:
        told.altered(changes)


async def _look(here: Surroundings, told: AccessTold) -> None:
    wanted = DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    answered = await here.connection.ask(wanted, 3)
    numbers = {
        (
            each.resource_type,
            each.resource_name,
            each.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for each in answered.resources
        for acl in each.acls
    }
    known = [*RULES, LEAVES, *OF_FIRST_USERS, *OF_EVERYBODY]
    found: dict[Any, Any] = {each: True for each in known if _numbers(each) in numbers}
    if len(found) != len(numbers):
        here.history.refusals.append(f"access: rules that nobody has made: {numbers}")
    described = await here.connection.ask(DescribeUserScramCredentialsRequest(users=None), 0)
    for each in described.results:
        found |= {(each.user, info.mechanism): info.iterations for info in each.credential_infos}
    found |= await quotas(here)
    here.history.refusals += told.read(found)


def _numbers(acl: Acl) -> tuple[Any, ...]:
    return (KINDS[acl.kind], acl.name, PATTERNS[acl.pattern], *numbers_of(acl).values())


async def _try(here: Surroundings, told: AccessTold) -> None:
    """Let a guest name topics, and compare what it is told with what the rules say, where these are known for sure."""
    names = [*NAMES, "guarded-abc"]
    topics = [MetadataRequestTopic(name=each) for each in names]
    here.other_connection.name = GUEST
    answered = await here.other_connection.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 9)
    rules = told.certain()
    if rules is None:
        return
    acls = [each for each in rules if isinstance(each, Acl)]
    who = PrincipalName(f"User:{GUEST}")
    for topic in answered.topics:
        found = topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED
        expected = answer(acls, who, GUEST, Operation.DESCRIBE, ResourceKind.TOPIC, topic.name, by_default=True)
        if found is not expected:
            here.history.refusals.append(f"access: the guest may see {topic.name}: {found}, by {acls}")
