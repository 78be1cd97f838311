"""An abort gives back what was acknowledged cumulatively: consumers are closed, come back, and get it in order."""

import pulsar
import pytest

import exacta
from exacta.core.commands import Acknowledge, BeginTransaction, Command, EndHandle
from exacta.core.ids import Offset
from exacta.core.replies import DONE, TransactionBegunReply
from exacta.ports.log import Answer
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.pulsar.consumers import Where
from tests.pulsar.by_hand import Broker, broker_by_hand
from tests.pulsar.consuming import ConsumerClient, message_id, produce, producer_of
from tests.pulsar.wire import client, running
from tests.pulsar_clients.python import TYPES, receive, send, texts

TIMEOUT_MS = 60_000


broker = pytest.fixture(broker_by_hand)


def ask(broker: exacta.Broker, command: Command) -> Answer:
    """Submit one command to a broker that runs; return its answer."""
    answers: list[Answer] = []
    broker.in_engine(lambda engine: engine.submit([command], answers.extend))
    return answers[0]


@pytest.mark.parametrize("times_out", [False, True])
@pytest.mark.parametrize("kind", [pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Failover])
def test_the_consumer_is_closed(broker: Broker, kind: "pb.CommandSubscribe.SubType", times_out: bool) -> None:
    producer = producer_of(broker)
    produce(producer, b"a", b"b", b"c")
    consumer = ConsumerClient(broker, kind)
    assert consumer.values() == [b"a", b"b", b"c"]
    transaction = consumer.begin(TIMEOUT_MS)
    assert not consumer.acknowledge(message_id(0, 1), cumulative=True, transaction=transaction).HasField("error")
    consumer.told()
    if times_out:
        broker.pass_time(TIMEOUT_MS)
        told = consumer.told()
    else:
        end = pb.CommandEndTxn(
            request_id=1, txnid_least_bits=transaction, txnid_most_bits=0, txn_action=pb.TxnAction.ABORT
        )
        consumer.client.send(end)
        broker.settle()
        ended, *told = consumer.told()
        assert not ended.HasField("error")
    assert [each.consumer_id for each in told if isinstance(each, pb.CommandCloseConsumer)] == [1]
    late = consumer.acknowledge(message_id(0, 2), cumulative=True, transaction=consumer.begin())
    assert late.error == pb.ServerError.ConsumerNotFound
    assert isinstance(consumer.subscribe(), pb.CommandSuccess)
    assert consumer.values() == [b"a", b"b", b"c"]
    again = consumer.acknowledge(message_id(0, 2), cumulative=True, transaction=consumer.begin())
    assert not again.HasField("error")


@pytest.mark.parametrize("kind", ["exclusive", "failover"])
@pytest.mark.parametrize("times_out", [False, True])
def test_pulsars_client_for_python_comes_back_by_itself(kind: str, times_out: bool) -> None:
    """It knows no transactions, so that its messages are acknowledged in its place."""
    with running() as broker, client(broker.pulsar_url) as opened:
        producer = opened.create_producer("t")
        send(producer, "a", "b", "c")
        consumer = opened.subscribe(
            "t", "s", consumer_type=TYPES[kind], initial_position=pulsar.InitialPosition.Earliest
        )
        assert texts(receive(consumer, 3)) == ["a", "b", "c"]
        begun = ask(broker, BeginTransaction(timeout_ms=50 if times_out else TIMEOUT_MS))
        assert isinstance(begun, TransactionBegunReply)
        transaction = begun.transaction_id
        where: Where = {"topic": "t", "partition": 0, "subscription": "s"}
        assert ask(broker, Acknowledge(**where, before=Offset(2), transaction=transaction)) == DONE
        if not times_out:
            assert ask(broker, EndHandle(transaction_id=transaction, commit=False)) == DONE
        assert texts(receive(consumer, 3)) == ["a", "b", "c"]
        send(producer, "d")
        assert texts(receive(consumer, 1)) == ["d"]
