"""Acknowledgements that come together: they are decided together, and each is answered as if it had come alone."""

from typing import Any

import pytest

from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.by_hand import Broker, broker_by_hand
from tests.pulsar.consuming import (
    EARLIEST,
    EXCLUSIVE,
    KEY_SHARED,
    SHARED,
    ConsumerClient,
    message_id,
    produce,
    producer_of,
)

broker = pytest.fixture(broker_by_hand)


@pytest.fixture
def submitted(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The commands that the engine has got since this list was emptied."""
    commands: list[Any] = []
    submit = broker.engine.submit

    def noted(several: Any, *rest: Any, **named: Any) -> int:
        commands.extend(several)
        return submit(several, *rest, **named)

    monkeypatch.setattr(broker.engine, "submit", noted)
    return commands


def test_acknowledgements_without_an_answer_are_one_command(broker: Broker, submitted: list[Any]) -> None:
    produce(producer_of(broker), *[b"x"] * 20)
    consumer = ConsumerClient(broker)
    acks = [
        pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Individual, message_id=[message_id(0, offset)])
        for offset in (3, 4, 9)
    ]
    consumer.client.send(*acks)
    broker.settle()
    assert [each.runs for each in submitted if hasattr(each, "runs")] == [((3, 4), (9, 9))]


def test_acknowledgements_of_one_turn_are_one_command_and_each_has_its_answer(
    broker: Broker, submitted: list[Any]
) -> None:
    producer = producer_of(broker)
    produce(producer, *[b"x"] * 4)
    consumer = ConsumerClient(broker)
    transaction, other = consumer.begin(), consumer.begin()
    consumer.acknowledge(message_id(0, 2), transaction=other)
    consumer.pushed()

    def told(*offsets: int) -> list[bool]:
        """Acknowledge these; return which were refused."""
        submitted.clear()
        acks = [in_transaction(offset, transaction, request_id=number) for number, offset in enumerate(offsets)]
        consumer.client.send(*acks)
        broker.settle()
        answers = consumer.told()
        assert [each.request_id for each in answers] == [each.request_id for each in acks]
        return [each.HasField("error") for each in answers]

    assert told(0, 1) == [False, False]
    assert [each.runs for each in submitted if hasattr(each, "runs")] == [((0, 0), (1, 1))]
    assert told(2, 3, 3) == [True, False, True], "one is another transaction's, and one was acknowledged before"
    consumer.abort(other)
    consumer.end(transaction)
    assert [each.offset for each in consumer.pushed()] == [2]


def test_what_follows_acknowledgements_sees_them(broker: Broker) -> None:
    produce(producer_of(broker), b"a", b"b")
    consumer = ConsumerClient(broker)
    consumer.pushed()
    transaction = consumer.begin()
    end = pb.CommandEndTxn(request_id=3, txnid_least_bits=transaction, txnid_most_bits=0, txn_action=pb.COMMIT)
    late = in_transaction(1, transaction, request_id=4)
    consumer.client.send(in_transaction(0, transaction, request_id=2), end, late)
    broker.settle()
    answers = {each.request_id: each.HasField("error") for each in consumer.told()}
    assert answers == {2: False, 3: False, 4: True}
    consumer.redeliver()
    assert consumer.values() == [b"b"]


def in_transaction(offset: int, transaction: int, *, request_id: int) -> pb.CommandAck:
    """Return the acknowledgement of one entry in a transaction."""
    return pb.CommandAck(
        consumer_id=1,
        ack_type=pb.CommandAck.Individual,
        message_id=[message_id(0, offset)],
        txnid_least_bits=transaction,
        txnid_most_bits=0,
        request_id=request_id,
    )


def test_a_reader_acknowledges_without_an_answer(broker: Broker) -> None:
    """Nothing is written for it, and no write of nothing is asked for."""
    produce(producer_of(broker), b"a", b"b")
    reader = ConsumerClient(broker, EXCLUSIVE, durable=False, start_message_id=EARLIEST)
    reader.acknowledge(message_id(0, 0), request_id=None)
    reader.pushed()
    reader.redeliver()
    assert reader.values() == [b"b"]


def test_ids_of_nothing_acknowledge_nothing(broker: Broker) -> None:
    produce(producer_of(broker), (b"a", b"b"))
    consumer = ConsumerClient(broker)
    for wrong in (message_id(5, 0), message_id(0, 1), message_id(0, 99), EARLIEST):
        assert not consumer.acknowledge(wrong).HasField("error")
        transaction = consumer.begin()
        refused = consumer.acknowledge(wrong, transaction=transaction)
        assert (refused.error, refused.txnid_least_bits) == (pb.ServerError.NotAllowedError, transaction)
    consumer.pushed()
    consumer.redeliver()
    assert consumer.values() == [b"a", b"b"]


def test_a_shared_subscription_takes_no_cumulative_acknowledgement(broker: Broker) -> None:
    produce(producer_of(broker), b"a")
    for kind in (SHARED, KEY_SHARED):
        consumer = ConsumerClient(broker, kind, subscription=str(kind))
        refused = consumer.acknowledge(message_id(0, 0), cumulative=True)
        assert (refused.error, bool(refused.message)) == (pb.ServerError.NotAllowedError, True)


@pytest.mark.parametrize("is_answered", [True, False])
def test_one_acknowledgement_has_not_too_many_parts(broker: Broker, is_answered: bool) -> None:
    """The ids fit into one small frame, and name millions of parts."""
    produce(producer_of(broker), tuple(b"" for _ in range(5000)))
    consumer = ConsumerClient(broker, permits=0)
    every_second = pb.MessageIdData(ledger_id=0, entry_id=0, ack_set=[0x5555555555555555] * 78)
    command = pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Individual, message_id=[every_second] * 50)
    if is_answered:
        command.request_id = 9
        assert consumer.ask(command).error == pb.ServerError.TooManyRequests
    else:
        consumer.client.send(command)
        broker.settle()
        assert consumer.client.connection.has_ended


def test_ids_of_entries_that_lie_together_are_looked_for_together(
    broker: Broker, submitted: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user may give a client a list of ids, which all come in one ACK; most of it is what delivery has forgotten."""
    count = 3000
    produce(producer_of(broker), (b"a", b"b"), *[b"x"] * count)
    consumer = ConsumerClient(broker, permits=0)
    looked: list[int] = []
    find = broker.engine.lookups._journal.find

    def counted(stream: int, offset: int, *rest: Any) -> Any:
        looked.append(offset)
        return find(stream, offset, *rest)

    monkeypatch.setattr(broker.engine.lookups._journal, "find", counted)
    submitted.clear()
    there = [message_id(0, offset) for offset in (0, *range(2, count + 2))]
    absent = [message_id(0, 1), message_id(5, 0), *[message_id(0, count + 2 + number) for number in range(count)]]
    assert not consumer.acknowledge(*reversed(there), *absent).HasField("error")
    assert [each.runs for each in submitted] == [((0, count + 1),)]
    assert len(looked) < count / 50


def test_a_refused_acknowledgement_is_named(broker: Broker) -> None:
    produce(producer_of(broker), *(b"%d" % number for number in range(7)))
    consumer = ConsumerClient(broker, EXCLUSIVE)
    consumer.pushed()
    one, two = consumer.begin(), consumer.begin()
    assert not consumer.acknowledge(message_id(0, 1), transaction=one).HasField("error")
    where = "of subscription 's' on persistent://public/default/t"
    refused = [
        consumer.acknowledge(message_id(0, 1), message_id(0, 2), transaction=two),
        consumer.acknowledge(message_id(0, 4), cumulative=True, transaction=two),
        consumer.acknowledge(*(message_id(0, number) for number in range(7)), transaction=two),
        consumer.acknowledge(message_id(0, 0), transaction=1_000),
        consumer.acknowledge(message_id(0, 99), transaction=two),
    ]
    assert [each.message for each in refused] == [
        f"transaction conflict: message 0:1:-1, 0:2:-1 {where} in TxnID(0,{two})",
        f"transaction conflict: up to message 0:4:-1 {where} in TxnID(0,{two})",
        f"transaction conflict: message 0:0:-1, 0:1:-1, 0:2:-1, 0:3:-1, 0:4:-1 and 2 more {where} in TxnID(0,{two})",
        f"transaction not found: message 0:0:-1 {where} in TxnID(0,1000)",
        f"a message is not there (any more): message 0:99:-1 {where} in TxnID(0,{two})",
    ]


def test_a_cumulative_acknowledgement_names_one_message(broker: Broker) -> None:
    produce(producer_of(broker), b"a", b"b")
    consumer = ConsumerClient(broker, EXCLUSIVE)
    for ids in ((), (message_id(0, 0), message_id(0, 1))):
        assert consumer.acknowledge(*ids, cumulative=True).error == pb.ServerError.NotAllowedError


@pytest.mark.parametrize("request_id", [None, 7], ids=["no answer", "answer"])
@pytest.mark.parametrize("is_other", [False, True], ids=["who seeks", "another consumer"])
def test_an_acknowledgement_of_before_a_seek_comes_too_late(
    broker: Broker, request_id: int | None, is_other: bool
) -> None:
    """Clients group them, so that one may leave when the seek is decided and nobody has been told yet."""
    produce(producer_of(broker), b"a", b"b")
    consumer = ConsumerClient(broker)
    late = ConsumerClient(broker) if is_other else consumer
    broker.held_syncs = []
    consumer.client.send(pb.CommandSeek(consumer_id=1, request_id=5, message_id=EARLIEST))
    ack = pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Individual, message_id=[message_id(0, 0)])
    if request_id is not None:
        ack.request_id = request_id
    late.client.send(ack)
    broker.release_syncs()
    broker.settle()
    assert not any(each.error for each in late.told() if isinstance(each, pb.CommandAckResponse))
    consumer.told()
    consumer.subscribe()
    assert consumer.values() == [b"a", b"b"]
