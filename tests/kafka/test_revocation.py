"""Revoked means now: what waits, what is shared, and who is connected, when a rule, a user or a key goes."""

import socket
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from exacta.config.security import STANDARD_AUTHORIZER
from exacta.core.commands import AlterScramKeys, CreateAcls, DeleteAcls
from exacta.core.ids import PrincipalName
from exacta.core.values.acl import Acl, AclFilter, Operation, Pattern, ResourceKind
from exacta.core.values.scram import ScramAlteration, ScramMechanism
from exacta.front.revocation import PAUSE_S
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.sasl.scram import ALGORITHMS, ScramKeys, salted_password
from exacta.security.backoff import LoginBackoff
from exacta.security.logins import MECHANISMS, Logins
from exacta.security.scram_keys import kept_key, shown_keys
from tests.kafka.subscribing import ask
from tests.kafka.test_classic_groups import Member
from tests.kafka.test_consumer_groups import join
from tests.kafka.test_logins import is_served, log_in
from tests.kafka.wire import Front, Wire, batch, front, produce, values_in

ME = PrincipalName("User:ANONYMOUS")
LONG_MS = 15_000
"""Longer than any answer may take here."""
AT_ONCE_S = 1.0
OPTIONS: dict[str, Any] = {"authorizer_class_name": STANDARD_AUTHORIZER}
SHA_256, SHA_512 = ScramMechanism


def rule(kind: ResourceKind, name: str, *, allows: bool = True, who: PrincipalName = ME) -> Acl:
    return Acl(kind, name, Pattern.LITERAL, who, "*", Operation.ALL, allows)


def allow(broker: Front, *acls: Acl) -> None:
    ask(broker, CreateAcls(acls=acls))


def take(broker: Front, acl: Acl) -> None:
    ask(broker, DeleteAcls(filters=(AclFilter(kind=acl.kind, name=acl.name),)))


@pytest.fixture
def broker() -> Iterator[Front]:
    with front(**OPTIONS) as running:
        yield running


T, U, GROUP = rule(ResourceKind.TOPIC, "t"), rule(ResourceKind.TOPIC, "u"), rule(ResourceKind.GROUP, "g")


def with_topics(broker: Front, *acls: Acl) -> Wire:
    allow(broker, *acls)
    wire = broker.connect()
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=each) for each in ("t", "u")]), 9)
    return wire


def fetch(*topics: str, wait_ms: int = LONG_MS) -> FetchRequest:
    found = [
        FetchTopic(topic=each, partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)])
        for each in topics
    ]
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=1 << 20, topics=found, session_epoch=-1)


def waits(broker: Front) -> None:
    """Wait until the broker has taken a fetch up that waits."""
    deadline = time.monotonic() + 10
    while not broker.on_loop(lambda: bool(broker.engine._fetcher._by_key)):
        assert time.monotonic() < deadline


def received(wire: Wire, request: Any, version: int) -> tuple[Any, float]:
    began = time.monotonic()
    _, answer = wire.receive(request, version)
    return answer, time.monotonic() - began


def codes(answer: Any) -> dict[str, int]:
    return {topic.topic: topic.partitions[0].error_code for topic in answer.responses}


# --- rules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["a rule that is gone", "a rule that denies"])
def test_a_fetch_that_waits_is_refused_at_once(broker: Front, by: str) -> None:
    wire = with_topics(broker, T, U)
    wire.send(fetch("t", "u"), 12)
    waits(broker)
    if by == "a rule that is gone":
        take(broker, T)
    else:
        allow(broker, rule(ResourceKind.TOPIC, "t", allows=False))
    answer, took = received(wire, fetch("t", "u"), 12)
    assert codes(answer) == {"u": ErrorCode.NONE, "t": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert took < AT_ONCE_S


def test_a_fetch_whose_rules_stay_waits_on(broker: Front) -> None:
    wire = with_topics(broker, T, U)
    wire.send(fetch("t"), 12)
    waits(broker)
    take(broker, U)
    assert broker.on_loop(lambda: not broker.revocation._has_stopped)
    other = broker.connect()
    assert produce(other, batch(b"x")).error_code == ErrorCode.NONE
    answer, _ = received(wire, fetch("t"), 12)
    assert values_in(answer.responses[0].partitions[0].records) == [b"x"]


def test_no_record_is_shown_that_comes_after_the_rule_has_gone(broker: Front) -> None:
    """The rule goes and the records come in one turn of the loop: nobody has looked at the connection by then."""
    wire = with_topics(broker, T)
    wire.send(fetch("t"), 12)
    waits(broker)
    broker.on_loop(partial(setattr, broker.engine, "access_changed", lambda event: None))
    take(broker, T)
    allow(broker, rule(ResourceKind.TOPIC, "t", who=PrincipalName("User:alice")))
    broker.on_loop(lambda: broker.engine.hurry_fetch(next(iter(broker.engine._fetcher._by_key.values())).request))
    answer, _ = received(wire, fetch("t"), 12)
    assert codes(answer) == {"t": ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_a_long_fetch_is_refused_at_once_too(broker: Front) -> None:
    names = [f"t{number}" for number in range(1_200)]
    allow(broker, Acl(ResourceKind.TOPIC, "t", Pattern.PREFIXED, ME, "*", Operation.ALL, True))
    wire = broker.connect()
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=each) for each in names]), 9)
    wire.send(fetch(*names), 12)
    waits(broker)
    allow(broker, rule(ResourceKind.TOPIC, names[-1], allows=False))
    answer, _ = received(wire, fetch(*names), 12)
    assert codes(answer) == {
        each: ErrorCode.TOPIC_AUTHORIZATION_FAILED if each == names[-1] else ErrorCode.NONE for each in names
    }


def test_who_waits_to_join_is_refused_at_once_and_members_leave(broker: Front) -> None:
    with_topics(broker, T, GROUP)
    first, second = Member(broker), Member(broker)
    first.send_join()
    first.receive_join()
    first.sync(**{first.member_id: b"all"})
    second.send_join()
    while first.heartbeat() != ErrorCode.REBALANCE_IN_PROGRESS:
        pass
    take(broker, GROUP)
    _, answer = second.wire.receive(second.request(), second.version)
    assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert first.heartbeat() == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert members(broker) == 0


def members(broker: Front) -> int:
    def count(state: Any) -> int:
        groups = (state.volatile.memberships.get("g"), state.volatile.consumer_groups.get("g"))
        return sum(len(each.members) for each in groups if each is not None)

    return broker.on_loop(lambda: broker.engine.advice.look(count))


def gone(broker: Front) -> bool:
    deadline = time.monotonic() + AT_ONCE_S
    while members(broker) and time.monotonic() < deadline:
        pass
    return not members(broker)


def test_a_member_of_kip_848_leaves(broker: Front) -> None:
    wire = with_topics(broker, T, GROUP)
    assert join(wire).error_code == ErrorCode.NONE
    assert members(broker) == 1
    take(broker, GROUP)
    assert gone(broker)


def test_many_changes_lead_to_few_looks(broker: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []
    steps = broker.revocation._steps

    def counted() -> object:
        looks.append(None)
        return steps()

    monkeypatch.setattr(broker.revocation, "_steps", counted)
    began = time.monotonic()
    for number in range(50):
        allow(broker, rule(ResourceKind.TOPIC, f"x{number}", allows=False))
    wire = with_topics(broker, T)
    allow(broker, rule(ResourceKind.TOPIC, "t", allows=False))
    wire.send(fetch("t"), 12)
    received(wire, fetch("t"), 12)
    assert 1 <= len(looks) <= 2 + (time.monotonic() - began) / PAUSE_S


# --- logins -----------------------------------------------------------------------------------------------------------


def keys(password: str, mechanism: ScramMechanism, salt: bytes = b"some salt") -> ScramAlteration:
    salted = salted_password(ALGORITHMS[mechanism.sasl_name], password, salt, 4_096)
    return ScramAlteration("alice", mechanism, kept_key(mechanism, salt, 4_096, salted))


def alter(broker: Front, alteration: ScramAlteration) -> None:
    ask(broker, AlterScramKeys(alterations=(alteration,)))


@pytest.fixture
def secured() -> Iterator[Front]:
    """A broker whose users lie in its log: alice logs in by `secret`."""
    found: list[Front] = []

    def kept(user: str, mechanism: str) -> ScramKeys | None:
        scram = next(each for each in ScramMechanism if each.sasl_name == mechanism)
        key = found[0].engine.advice.scram_key(user, scram)
        return None if key is None else shown_keys(key)

    def logins() -> Logins:
        backoff = LoginBackoff(0.001, time.monotonic)
        return Logins(MECHANISMS[:3], backoff, keys_of=kept, secret=b"a secret", wall_ms=lambda: 0)

    with Front(logins=logins) as running:
        found.append(running)
        for mechanism in ScramMechanism:
            alter(running, keys("secret", mechanism))
        yield running


CHANGES = {
    "its keys are removed": lambda mechanism: ScramAlteration("alice", mechanism),
    "its password is changed": lambda mechanism: keys("another", mechanism),
    "its password is set again": lambda mechanism: keys("secret", mechanism, b"fresh salt"),
}


def logged_in(broker: Front, mechanism: str) -> Wire:
    wire = broker.connect()
    assert log_in(wire, mechanism).error_code == ErrorCode.NONE
    return wire


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
def test_who_has_logged_in_by_keys_that_are_gone_is_closed(secured: Front, mechanism: str, change: str) -> None:
    closed, stays = logged_in(secured, mechanism), logged_in(secured, "SCRAM-SHA-512")
    used = SHA_512 if mechanism.endswith("512") else SHA_256  # PLAIN goes by the first that a user has
    began = time.monotonic()
    alter(secured, CHANGES[change](used))
    assert closed.is_closed()
    assert time.monotonic() - began < AT_ONCE_S
    assert used is SHA_512 or is_served(stays)


def test_another_users_login_and_another_mechanism_change_nothing(secured: Front) -> None:
    wire = logged_in(secured, "SCRAM-SHA-256")
    alter(secured, ScramAlteration("alice", SHA_512))
    ask(secured, AlterScramKeys(alterations=(ScramAlteration("bob", SHA_256, keys("x", SHA_256).key),)))
    assert is_served(wire)


def test_a_login_on_its_way_is_refused_when_its_keys_have_gone(secured: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    """The password is right, and is derived from on a thread while the user is removed."""

    def derive(*args: Any) -> bytes:
        alter(secured, ScramAlteration("alice", SHA_256))
        return salted_password(*args)

    monkeypatch.setattr("exacta.security.logins.salted_password", derive)
    assert log_in(secured.connect(), "PLAIN").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("others", [False, True])
def test_memberships_end_with_the_last_connection_of_a_principal(secured: Front, *, others: bool) -> None:
    wire = logged_in(secured, "SCRAM-SHA-256")
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    assert join(wire).error_code == ErrorCode.NONE
    other = logged_in(secured, "SCRAM-SHA-512") if others else None
    alter(secured, ScramAlteration("alice", SHA_256))
    assert wire.is_closed()
    assert gone(secured) is not others
    assert other is None or is_served(other)


def test_a_user_that_is_gone_is_no_member_even_if_it_has_no_connection_just_then(secured: Front) -> None:
    wire = logged_in(secured, "SCRAM-SHA-256")
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    assert join(wire).error_code == ErrorCode.NONE
    wire.socket.close()
    for mechanism in ScramMechanism:
        alter(secured, ScramAlteration("alice", mechanism))
    assert gone(secured)


def test_who_does_not_read_is_closed_as_well(secured: Front) -> None:
    """Its answers fill the socket, and a close that waited for them would never come."""
    wire = logged_in(secured, "SCRAM-SHA-256")
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    for _ in range(8):
        assert produce(wire, batch(b"x" * 900_000)).error_code == ErrorCode.NONE
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    for _ in range(16):
        wire.send(fetch("t"), 12)
    alter(secured, ScramAlteration("alice", SHA_256))
    deadline = time.monotonic() + AT_ONCE_S
    while broken := secured.on_loop(lambda: len(secured.connections)):
        assert time.monotonic() < deadline, broken
