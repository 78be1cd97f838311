"""AcknowledgeMessages: messages of a subscription, named by their ids, are acknowledged in a transaction."""

from collections.abc import Iterator
from typing import Any

import pytest

from exacta.core.replies import DONE
from exacta.ports.authorizer import Principal, ResourceKind
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17791_acknowledge_messages import (
    AcknowledgeMessagesRequest,
    PartitionToAcknowledge,
    Run,
    SubscriptionToAcknowledge,
)
from tests.kafka import asking
from tests.kafka.access_rules import Rules
from tests.kafka.subscribing import Subscriber
from tests.kafka.test_ask_lag import produce
from tests.kafka.test_ask_subscriptions import the_one
from tests.kafka.test_handles import Handle
from tests.kafka.test_topic_ids import create
from tests.kafka.wire import Front, Wire, batch, front

NONE, CONFLICT = ErrorCode.NONE, ErrorCode.INVALID_RECORD_STATE


@pytest.fixture
def broker() -> Iterator[Front]:
    """A broker with six messages, and subscription `s`."""
    with front() as running:
        wire = running.connect()
        create(wire)
        for _ in range(3):
            produce(wire, batch(b"a", b"b"))
        Subscriber(running)
        yield running


@pytest.fixture
def wire(broker: Front) -> Wire:
    return broker.connect()


def acknowledge(wire: Wire, transaction: int, *runs: tuple[int, int], name: str = "s", partition_id: int = 0) -> int:
    partition = PartitionToAcknowledge(
        partition_id=partition_id, runs=[Run(first_offset=first, last_offset=last) for first, last in runs]
    )
    request = AcknowledgeMessagesRequest(
        transaction_id=transaction, subscriptions=[SubscriptionToAcknowledge(name=name, partitions=[partition])]
    )
    answer = wire.ask(request, 0)
    assert answer.error_code == NONE
    [subscription] = answer.subscriptions
    [result] = subscription.partitions
    assert (subscription.name, result.partition_id) == (name, partition_id)
    return int(result.error_code)


@pytest.mark.parametrize("commit", [True, False])
def test_they_end_with_their_transaction(broker: Front, wire: Wire, commit: bool) -> None:
    handle = Handle(broker)
    for _ in range(2):  # an answer may be lost
        assert acknowledge(wire, handle.transaction_id, (0, 0), (3, 4)) == NONE
    assert (the_one(wire).pending, the_one(wire).position) == (3, 0)
    assert handle.end(commit=commit) == DONE
    assert the_one(wire).pending == 0
    assert the_one(wire).left == (3 if commit else 6)


def test_another_transaction_has_it(broker: Front, wire: Wire) -> None:
    first, second = Handle(broker), Handle(broker)
    assert acknowledge(wire, first.transaction_id, (1, 2)) == NONE
    assert acknowledge(wire, second.transaction_id, (2, 3)) == CONFLICT
    assert first.end(commit=True) == DONE
    assert acknowledge(wire, second.transaction_id, (2, 3)) == CONFLICT
    assert acknowledge(wire, first.transaction_id, (3, 3)) == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"name": "other"}, ErrorCode.RESOURCE_NOT_FOUND),
        ({"partition_id": 77}, ErrorCode.RESOURCE_NOT_FOUND),
        ({"partition_id": -1}, ErrorCode.RESOURCE_NOT_FOUND),
        ({"runs": ((5, 6),)}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"runs": ((-1, 0),)}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"runs": ((1, 0),)}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"name": "reader"}, ErrorCode.INVALID_REQUEST),
        ({"transaction": 10**9}, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
    ],
)
def test_what_is_refused(broker: Front, wire: Wire, wrong: dict[str, object], code: ErrorCode) -> None:
    Subscriber(broker, "reader", durable=False)
    given: dict[str, Any] = {"transaction": Handle(broker).transaction_id, "runs": ((0, 0),), **wrong}
    assert acknowledge(wire, given.pop("transaction"), *given.pop("runs"), **given) == code
    found = asking.subscriptions(wire).subscriptions
    assert [each.pending for each in found] == [0, 0]


@pytest.mark.parametrize(
    ("missing", "code"),
    [
        (None, NONE),
        (ResourceKind.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (ResourceKind.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (ResourceKind.CLUSTER, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_each_right_is_needed(broker: Front, wire: Wire, missing: ResourceKind | None, code: ErrorCode) -> None:
    """Somebody else has begun the transaction, and it is empty: only who may alter the cluster may use it, too."""
    handle = Handle(broker)

    def begin_logins() -> None:
        broker.context.authorizer = Rules(lambda _, resource: resource.kind is not missing)
        for each in broker.connections:
            each.principal = Principal(name="mallory")

    broker.on_loop(begin_logins)
    assert acknowledge(wire, handle.transaction_id, (0, 0)) == code


def test_one_of_two_partitions_is_refused_alone(broker: Front, wire: Wire) -> None:
    handle = Handle(broker)
    run = Run(first_offset=0, last_offset=0)
    partitions = [PartitionToAcknowledge(partition_id=each, runs=[run]) for each in (77, 0)]
    subscription = SubscriptionToAcknowledge(name="s", partitions=partitions)
    request = AcknowledgeMessagesRequest(transaction_id=handle.transaction_id, subscriptions=[subscription])
    [answered] = wire.ask(request, 0).subscriptions
    assert [each.error_code for each in answered.partitions] == [ErrorCode.RESOURCE_NOT_FOUND, NONE]
    assert the_one(wire).pending == 1
    assert wire.ask(AcknowledgeMessagesRequest(transaction_id=handle.transaction_id), 0).subscriptions == []
