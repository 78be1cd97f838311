"""The tests that need virtual time, a slow disk, a bug or an authorizer, on a loop that is turned by hand."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from exacta.ports.authorizer import Operation, Principal, Resource
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.pulsar.connection import PING_SECONDS
from tests.kafka.access_rules import Rules
from tests.pulsar.by_hand import Broker, Client, send_frame


def opened(broker: Broker, topic: str = "t", name: str = "") -> Client:
    """Return a client with a producer."""
    client = broker.connect()
    success = client.ask(open_producer(topic, name))
    assert isinstance(success, pb.CommandProducerSuccess)
    return client


def open_producer(topic: str, name: str = "") -> pb.CommandProducer:
    return pb.CommandProducer(
        topic=topic, producer_id=0, request_id=1, producer_name=name, user_provided_producer_name=bool(name)
    )


def test_a_silent_client_is_asked_and_then_given_up() -> None:
    broker = Broker()
    client = broker.connect()
    broker.pass_time(int(PING_SECONDS * 1000) * 2)
    assert [type(each) for each in client.answers()] == [pb.CommandPing]
    client.send(pb.CommandPong())
    broker.settle()
    broker.pass_time(int(PING_SECONDS * 1000) * 2)
    assert [type(each) for each in client.answers()] == [pb.CommandPing]
    assert not client.is_closing()
    broker.pass_time(int(PING_SECONDS * 1000))
    assert client.closed
    broker.end()


def test_the_sends_of_one_read_are_one_submit(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    client = opened(broker)
    submitted: list[int] = []
    submit = broker.engine.submit

    def counted(commands: Any, *rest: Any) -> int:
        submitted.append(len(commands))
        return submit(commands, *rest)

    monkeypatch.setattr(broker.engine, "submit", counted)
    client.send_bytes(b"".join(send_frame(b"x", sequence=number) for number in range(20)))
    broker.settle()
    assert submitted == [20]
    assert [each.sequence_id for each in client.answers()] == list(range(20))
    broker.end()


def test_no_receipt_leaves_before_its_entry_is_durable_or_before_an_earlier_one() -> None:
    broker = Broker()
    client = opened(broker)
    begun = client.ask(pb.CommandNewTxn(request_id=1, txn_ttl_millis=60_000, tc_id=0))
    broker.held_syncs = []
    client.send_bytes(send_frame(b"plain", sequence=0))
    broker.settle()
    client.send_bytes(send_frame(b"inside", sequence=1, transaction=begun.txnid_least_bits))
    broker.settle()
    assert client.answers() == []
    broker.release_syncs()
    broker.settle()
    assert [each.sequence_id for each in client.answers()] == [0, 1]
    broker.end()


def test_a_client_that_leaves_while_its_sends_wait_leaves_nothing_behind() -> None:
    broker = Broker()
    client = opened(broker)
    broker.held_syncs = []
    client.send_bytes(b"".join(send_frame(b"x" * 1000, sequence=number) for number in range(40)))
    broker.settle()
    client.vanish()
    broker.settle()
    broker.release_syncs()
    broker.settle()
    broker.end()


def test_a_transaction_ends_when_its_time_is_up_and_not_before() -> None:
    broker = Broker()
    client = opened(broker)
    begun = client.ask(pb.CommandNewTxn(request_id=1, txn_ttl_millis=10_000, tc_id=0))
    added = pb.CommandAddPartitionToTxn(
        request_id=2, txnid_least_bits=begun.txnid_least_bits, txnid_most_bits=0, partitions=["t"]
    )
    broker.pass_time(9_999)
    assert not client.ask(added).HasField("error")
    broker.pass_time(1)
    assert client.ask(added).error == pb.ServerError.InvalidTxnStatus
    broker.end()


@pytest.mark.parametrize("where", ["ask", "submit"])
def test_a_bug_harms_its_own_connection_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    broker = Broker()
    client, other = opened(broker), opened(broker, "u")

    def broken(*arguments: Any) -> None:
        raise ArithmeticError

    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR, "exacta.pulsar"):
        patch.setattr(broker.context, where, broken)
        client.send_bytes(send_frame(b"x"))
        client.send(pb.CommandNewTxn(request_id=1, txn_ttl_millis=10_000, tc_id=0))
        broker.settle()
    assert client.closed
    assert "failed" in caplog.text
    other.send_bytes(send_frame(b"x"))
    broker.settle()
    assert [type(each) for each in other.answers()] == [pb.CommandSendReceipt]
    broker.end()


@pytest.mark.parametrize(
    ("command", "right", "error_of"),
    [
        (open_producer("t"), Operation.WRITE, lambda answer: answer.error),
        (pb.CommandLookupTopic(topic="t", request_id=1), Operation.DESCRIBE, lambda answer: answer.error),
        (pb.CommandPartitionedTopicMetadata(topic="t", request_id=1), Operation.DESCRIBE, lambda answer: answer.error),
        (
            pb.CommandAddPartitionToTxn(request_id=1, txnid_least_bits=0, partitions=["u", "t"]),
            Operation.WRITE,
            lambda answer: answer.error,
        ),
        (
            pb.CommandAddSubscriptionToTxn(
                request_id=1, txnid_least_bits=0, subscription=[pb.Subscription(topic="t", subscription="s")]
            ),
            Operation.READ,
            lambda answer: answer.error,
        ),
    ],
    ids=["PRODUCER", "LOOKUP", "PARTITIONED_METADATA", "ADD_PARTITION_TO_TXN", "ADD_SUBSCRIPTION_TO_TXN"],
)
def test_a_client_without_the_right_is_refused(command: Any, right: Operation, error_of: Callable[[Any], int]) -> None:
    rules = Rules(lambda operation, resource: (operation, resource.name) != (right, "t"))
    broker = Broker(rules)
    client = broker.connect()
    answer = client.ask(command)
    assert error_of(answer) == pb.ServerError.AuthorizationError
    assert answer.message
    assert broker.engine.advice.partition_count("t") == 0
    broker.end()


@pytest.mark.parametrize("who", ["who has begun it", "who may write what it holds", "a stranger"])
def test_a_transaction_is_ended_by_those_who_may_and_no_others(who: str) -> None:
    allowed = True
    broker = Broker(Rules(lambda operation, resource: allowed or who == "who may write what it holds"))
    alice = opened(broker)
    alice.connection.principal = Principal(name="alice")
    begun = alice.ask(pb.CommandNewTxn(request_id=1, txn_ttl_millis=10_000, tc_id=0))
    alice.send_bytes(send_frame(b"x", transaction=begun.txnid_least_bits))
    broker.settle()
    assert [type(each) for each in alice.answers()] == [pb.CommandSendReceipt]
    allowed = False
    one = alice if who == "who has begun it" else broker.connect()
    end = pb.CommandEndTxn(request_id=2, txnid_least_bits=begun.txnid_least_bits, txnid_most_bits=0)
    assert one.ask(end).HasField("error") is (who == "a stranger")
    broker.end()


def test_a_topic_is_created_only_for_those_who_may() -> None:
    def but_create(operation: Operation, resource: Resource) -> bool:
        return operation is not Operation.CREATE

    broker = Broker(Rules(but_create))
    client = broker.connect()
    assert client.ask(open_producer("t")).error == pb.ServerError.TopicNotFound
    assert broker.engine.advice.partition_count("t") == 0
    broker.end()


def test_a_client_that_leaves_before_its_producer_is_open_keeps_no_name() -> None:
    broker = Broker()
    client = broker.connect()
    broker.held_syncs = []
    client.send(open_producer("t", "p"))
    broker.settle()
    client.vanish()
    broker.settle()
    broker.release_syncs()
    broker.settle()
    opened(broker, "t", "p")
    broker.end()


@pytest.mark.parametrize("command", [pb.CommandSuccess(request_id=1), pb.CommandSend(producer_id=7, sequence_id=0)])
def test_a_command_that_ends_its_connection_is_counted_no_more(command: Any) -> None:
    broker = Broker()
    client = opened(broker)
    if isinstance(command, pb.CommandSend):
        client.send_bytes(send_frame(b"x", number=7))
    else:
        client.send(command)
    broker.settle()
    assert client.closed
    broker.end()


def test_a_command_names_so_many_topics_at_most() -> None:
    broker = Broker()
    client = opened(broker)
    begun = client.ask(pb.CommandNewTxn(request_id=1, txn_ttl_millis=10_000, tc_id=0))
    added = pb.CommandAddPartitionToTxn(
        request_id=2, txnid_least_bits=begun.txnid_least_bits, partitions=["t"] * 10_000
    )
    assert not client.ask(added).HasField("error")
    added.partitions.append("t")
    assert client.ask(added).error == pb.ServerError.NotAllowedError
    broker.end()


def test_what_was_sent_before_the_server_stops_is_appended_before_the_engine_closes() -> None:
    broker = Broker()
    client = opened(broker)
    client.send_bytes(send_frame(b"x"))
    while not client.connection._sends._gathered:
        broker.loop.turn()
    client.connection.stop_taking_requests()
    broker.engine.close(lambda: None)
    assert not client.connection._sends._gathered
    broker.settle()
    assert [type(each) for each in client.answers()] == [pb.CommandSendReceipt]
    broker.end()


def test_what_was_sent_before_its_connection_ended_is_not_appended_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash-like end of the server its engine takes no commands."""
    broker = Broker()
    client = opened(broker)
    client.send_bytes(send_frame(b"x"))
    while not client.connection._sends._gathered:
        broker.loop.turn()
    client.connection.abort()
    monkeypatch.setattr(broker.engine, "submit", None)
    broker.settle()
    assert client.closed
    broker.end()
