"""The coordinator's commands and sends in transactions, in frames."""

import time
from contextlib import closing

import pytest

import exacta
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.session import error_of
from tests.pulsar.wire import ANSWER_SECONDS, Wire, running, stored

COMMIT, ABORT = pb.TxnAction.COMMIT, pb.TxnAction.ABORT
SHARED = pb.CommandSubscribe.Shared


def test_the_one_coordinator_is_here(wire: Wire) -> None:
    assert error_of(wire.ask(pb.CommandTcClientConnectRequest(request_id=1, tc_id=0))) is None
    other = wire.ask(pb.CommandTcClientConnectRequest(request_id=2, tc_id=1))
    assert (other.error, bool(other.message)) == (pb.ServerError.TransactionCoordinatorNotFound, True)


def test_records_of_a_commit_count_and_those_of_an_abort_do_not() -> None:
    with running() as broker:
        wire = Wire(broker.pulsar_url)
        wire.open_producer("t")
        first, second = wire.begin().txnid_least_bits, wire.begin().txnid_least_bits
        assert first != second
        for transaction in (first, second):
            assert error_of(wire.add_partition(transaction, "t", "persistent://public/default/t")) is None
            assert isinstance(wire.produce(b"%d" % transaction, transaction=transaction), pb.CommandSendReceipt)
        wire.produce(b"plain")
        assert error_of(wire.end(first, COMMIT)) is None
        assert error_of(wire.end(second, ABORT)) is None
        wire.close()
        broker.stop()
        found = stored(broker.data, "t", committed=True)
        shown = [
            bytes(entry.payload)
            for header, (_, entry) in zip(
                [each for each in found.headers if each.magic != 2], found.entries, strict=True
            )
            if header.producer_id not in found.aborted
        ]
        assert shown == [b"%d" % first, b"plain"]


def test_any_connection_may_go_on_with_a_transaction_also_after_a_crash() -> None:
    with running(transaction_sync_every_write=True) as broker:
        wire = Wire(broker.pulsar_url)
        wire.open_producer("t")
        transaction = wire.begin().txnid_least_bits
        wire.produce(b"a", transaction=transaction)
        wire.close()
        broker.restart(clean=False)
        wire = Wire(broker.pulsar_url)
        wire.open_producer("t")
        assert isinstance(wire.produce(b"b", transaction=transaction), pb.CommandSendReceipt)
        assert error_of(wire.end(transaction, COMMIT)) is None
        wire.close()
        broker.stop()
        found = stored(broker.data, "t", committed=True)
        assert found.payloads() == [b"a", b"b"]
        assert [header.producer_id for header in found.headers] == [0, 0, 0]  # the third one is the marker
        assert all(header.transactional for header in found.headers)


@pytest.mark.parametrize("killed", [True, False])
def test_what_a_producer_without_a_name_sends_again_is_there_once(killed: bool) -> None:
    with running() as broker:
        wire = Wire(broker.pulsar_url)
        name = wire.open_producer("t").producer_name
        transaction = wire.begin().txnid_least_bits
        wire.produce(b"a", transaction=transaction)
        wire.produce(b"b", b"c", sequence=1, transaction=transaction)
        if killed:
            broker.restart(clean=False)
        wire.close()
        wire = Wire(broker.pulsar_url)
        wire.open_producer("t", name=name, user_provided_producer_name=False, epoch=1)
        repeats = [
            wire.produce(b"a", transaction=transaction),
            wire.produce(b"b", b"c", sequence=1, transaction=transaction),
        ]
        assert [each.message_id.entry_id for each in repeats] == [2**64 - 1] * 2
        assert wire.produce(b"d", sequence=3, transaction=transaction).message_id.entry_id == 3
        assert error_of(wire.end(transaction, COMMIT)) is None
        assert wire.produce(b"e", sequence=3).message_id.entry_id == 5, "outside of a transaction nobody can tell"
        wire.close()


@pytest.mark.parametrize("commits", [True, False])
def test_a_repeat_of_an_end_is_answered_as_the_first_time(wire: Wire, commits: bool) -> None:
    same, other = (COMMIT, ABORT) if commits else (ABORT, COMMIT)
    transaction = wire.begin().txnid_least_bits
    assert [error_of(wire.end(transaction, same)) for _ in range(3)] == [None] * 3
    refused = wire.end(transaction, other)
    assert (refused.error, bool(refused.message)) == (pb.ServerError.InvalidTxnStatus, True)
    assert (refused.txnid_least_bits, refused.txnid_most_bits) == (transaction, 0)


@pytest.mark.parametrize("again", [COMMIT, ABORT])
def test_a_repeat_is_not_found_where_the_operator_wants_that(again: "pb.TxnAction") -> None:
    with running(pulsar_transaction_repeat="strict") as broker:
        wire = Wire(broker.pulsar_url)
        transaction = wire.begin().txnid_least_bits
        assert error_of(wire.end(transaction, COMMIT)) is None
        refused = wire.end(transaction, again)
        assert (refused.error, bool(refused.message)) == (pb.ServerError.TransactionNotFound, True)
        wire.close()


@pytest.mark.parametrize("repeat", ["idempotent", "strict"])
def test_a_transaction_that_is_not_open_comes_before_a_topic_that_is_not_there(repeat: str) -> None:
    """Apache Pulsar looks for the transaction first, and remembers no outcome."""
    with running(pulsar_transaction_repeat=repeat) as broker:
        wire = Wire(broker.pulsar_url)
        wire.open_producer("t")
        wire.subscribe("t", kind=SHARED)
        receipt = wire.produce(b"a")
        transaction = wire.begin().txnid_least_bits
        assert error_of(wire.end(transaction, COMMIT)) is None

        def errors(transaction: int, topic: str) -> set[int | None]:
            subscribed = wire.ask(wire.session.add_subscriptions(transaction, topic, "s"))
            return {error_of(wire.add_partition(transaction, topic)), error_of(subscribed)}

        not_found, ended = pb.ServerError.TransactionNotFound, pb.ServerError.InvalidTxnStatus
        on_it = not_found if repeat == "strict" else ended
        assert errors(transaction + 1_000, "nowhere") == {not_found}
        assert errors(transaction + 1_000, "t") == {not_found}
        assert errors(transaction, "nowhere") == {not_found}
        assert errors(transaction, "t") == {on_it}
        assert wire.acknowledge(receipt.message_id, transaction=transaction).error == on_it
        wire.close()


def test_outcomes_are_forgotten_the_oldest_first_when_there_are_more_than_the_operator_wants() -> None:
    with running(pulsar_transaction_outcome_retention_count=2) as broker:
        wire = Wire(broker.pulsar_url)
        ended = [wire.begin().txnid_least_bits for _ in range(3)]
        assert [error_of(wire.end(each, COMMIT)) for each in ended] == [None] * 3
        assert [error_of(wire.end(each, COMMIT)) for each in ended] == [pb.ServerError.TransactionNotFound, None, None]
        wire.close()


def test_an_outcome_is_forgotten_after_the_time_that_the_operator_wants() -> None:
    with running(pulsar_transaction_outcome_retention_ms=1) as broker:
        wire = Wire(broker.pulsar_url)
        transaction = wire.begin().txnid_least_bits
        assert error_of(wire.end(transaction, COMMIT)) is None
        deadline = time.monotonic() + ANSWER_SECONDS
        while (refused := error_of(wire.end(transaction, COMMIT))) is None:
            assert time.monotonic() < deadline, "the outcome is never forgotten"
        assert refused == pb.ServerError.TransactionNotFound
        wire.close()


def test_a_late_send_is_refused_and_the_producer_goes_on(wire: Wire) -> None:
    """NotAllowedError is the one answer after which the Go client does not send the message for ever."""
    wire.open_producer("t")
    transaction = wire.begin().txnid_least_bits
    wire.end(transaction, COMMIT)
    for late in (transaction, transaction + 1_000_000):
        refused = wire.produce(b"late", transaction=late)
        assert (type(refused), refused.error) == (pb.CommandSendError, pb.ServerError.NotAllowedError)
        assert refused.message
    assert isinstance(wire.produce(b"plain"), pb.CommandSendReceipt)


@pytest.mark.parametrize("most", [0, 1, 2**64 - 1])
def test_a_transaction_that_there_never_was_is_not_found(wire: Wire, most: int) -> None:
    least = 2**63 if most == 0 else 0
    refused = wire.request(pb.CommandEndTxn(txnid_most_bits=most, txnid_least_bits=least, txn_action=COMMIT))
    assert (refused.error, bool(refused.message)) == (pb.ServerError.TransactionNotFound, True)


def test_what_is_added_is_checked(wire: Wire) -> None:
    transaction = wire.begin().txnid_least_bits
    assert wire.add_partition(transaction, "nowhere").error == pb.ServerError.TopicNotFound
    assert wire.add_partition(transaction, "non-persistent://a/b/c").error == pb.ServerError.InvalidTopicName
    wire.open_producer("t")
    assert wire.add_partition(transaction, "t-partition-1").error == pb.ServerError.TopicNotFound
    subscription = pb.CommandAddSubscriptionToTxn(
        request_id=1,
        txnid_least_bits=transaction,
        txnid_most_bits=0,
        subscription=[pb.Subscription(topic="t", subscription="s")],
    )
    assert error_of(wire.ask(subscription)) is None
    wire.end(transaction, ABORT)
    assert wire.ask(subscription).error == pb.ServerError.InvalidTxnStatus
    assert wire.add_partition(transaction, "t").error == pb.ServerError.InvalidTxnStatus


@pytest.mark.parametrize("timeout_ms", [0, 10**9, 2**64 - 1])
def test_a_time_out_that_cannot_be_had_is_refused(wire: Wire, timeout_ms: int) -> None:
    refused = wire.begin(timeout_ms)
    assert (refused.error, bool(refused.message)) == (pb.ServerError.NotAllowedError, True)
    assert not refused.HasField("txnid_least_bits")


def test_a_transaction_ends_when_its_time_is_up(wire: Wire) -> None:
    wire.open_producer("t")
    transaction = wire.begin(timeout_ms=50).txnid_least_bits
    deadline = time.monotonic() + ANSWER_SECONDS
    while error_of(wire.add_partition(transaction, "t")) is None:
        assert time.monotonic() < deadline, "the transaction stays open"
    assert wire.add_partition(transaction, "t").error == pb.ServerError.InvalidTxnStatus
    assert wire.produce(b"late", transaction=transaction).error == pb.ServerError.NotAllowedError
    assert error_of(wire.end(transaction, ABORT)) is None


def test_beyond_the_limit_a_begin_is_answered(broker: exacta.Broker, wire: Wire) -> None:
    """Apache Pulsar does not answer at all then."""
    frames = 10_001
    wire.send(*(pb.CommandNewTxn(request_id=number, txn_ttl_millis=60_000, tc_id=0) for number in range(frames)))
    answers = [wire.receive() for _ in range(frames)]
    refused = [answer for answer in answers if error_of(answer) is not None]
    assert [(answer.error, bool(answer.message)) for answer in refused] == [(pb.ServerError.TooManyRequests, True)]


def test_transactions_of_a_connection_that_has_closed_make_room(broker: exacta.Broker, wire: Wire) -> None:
    """Or everybody's begin is refused until their time is up."""
    frames = 10_000
    with closing(Wire(broker.pulsar_url)) as other:
        other.send(*(pb.CommandNewTxn(request_id=each, txn_ttl_millis=600_000, tc_id=0) for each in range(frames)))
        for _ in range(frames):
            other.receive()
        assert error_of(wire.begin()) is not None
    deadline = time.monotonic() + ANSWER_SECONDS
    while error_of(begun := wire.begin()) is not None:
        assert time.monotonic() < deadline, "nobody makes room"
    wire.open_producer("t")
    assert error_of(wire.add_partition(begun.txnid_least_bits, "t")) is None
    assert error_of(wire.end(begun.txnid_least_bits, ABORT)) is None
