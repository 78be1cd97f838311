"""Heartbeats that assign much are rehearsed on a thread, those of one group one after another."""

from collections.abc import Callable

import pytest

from exacta.core.commands import ConsumerHeartbeat, CreateAcls
from exacta.core.groups.consumer import rehearsal
from exacta.core.groups.consumer.heartbeat import heartbeat
from exacta.core.outcome import Outcome
from exacta.core.state.state import State
from exacta.core.values.acl import ResourceKind
from exacta.kafka.handlers import k68_consumer_group_heartbeat as heartbeats
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.core.access.values import acl
from tests.kafka.access_rules import Rules
from tests.kafka.by_hand import Broker, Client
from tests.kafka.test_long_requests import create, hold_threads


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    monkeypatch.setattr(rehearsal, "MOST_AT_ONCE", 0)
    broker = Broker()
    broker.ask(broker.connect(), create("t", partitions=4), 7)
    return broker


@pytest.fixture
def threads(broker: Broker) -> list[Callable[[], None]]:
    return hold_threads(broker)


def join(broker: Broker, member: str) -> Client:
    client = broker.connect()
    joining = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    client.send(joining, 1)
    return client


def test_members_who_join_at_once_are_rehearsed_once_each(
    broker: Broker, threads: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    rehearsed = []

    def rehearse(state: State, command: ConsumerHeartbeat, now_ms: int) -> Outcome:
        rehearsed.append(command.member_id)
        return heartbeat(state, command, now_ms)

    monkeypatch.setattr(heartbeats, "heartbeat", rehearse)
    clients = [join(broker, member) for member in "abc"]
    broker.settle()
    while threads:
        threads.pop(0)()
        broker.settle()
    answers = [answer for client in clients for _, answer in client.answers()]
    assert [answer.error_code for answer in answers] == [ErrorCode.NONE] * 3
    assert rehearsed == ["a", "b", "c"]
    assert not broker.shared.rehearsals._waiting


def test_who_goes_leaves_the_line(broker: Broker, threads: list[Callable[[], None]]) -> None:
    first, second, third, last = (join(broker, f"m{number}") for number in range(4))
    broker.settle()
    second.vanish()
    first.vanish()
    third.vanish()
    while threads:
        threads.pop(0)()
        broker.settle()
    [(_, answer)] = last.answers()
    assert answer.error_code == ErrorCode.NONE
    assert not broker.shared.rehearsals._waiting


def test_who_may_not_read_the_group_any_more_is_no_member_after_its_rehearsal(
    broker: Broker, threads: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    member = join(broker, "m")
    broker.settle()
    closed = Rules(lambda operation, resource: resource.kind is not ResourceKind.GROUP)
    monkeypatch.setattr(broker.context, "authorizer", closed)
    broker.engine.submit([CreateAcls(acls=(acl(kind=ResourceKind.GROUP, allows=False),))], lambda answers: None)
    while threads:
        threads.pop(0)()
        broker.settle()
    [(_, answer)] = member.answers()
    assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert not broker.engine.advice.look(lambda state: bool(state.volatile.consumer_groups))
