"""The check of a transaction and of topics before they are used together: the table of `transactions.py`."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from exacta.core.commands import AddPartitions, Command, CreateTopic, InitProducerId, JoinTransaction
from exacta.core.replies import ProducerBoundReply, TransactionJoinedReply
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.docstring_tables import docstring_table
from tests.pulsar.by_hand import Broker
from tests.pulsar.consuming import ConsumerClient

TABLE = docstring_table("exacta.pulsar.transactions", "the transaction")
TOPICS = {"its topics are there": "t", "one of them is not": "absent"}


@pytest.fixture
def broker() -> Iterator[Broker]:
    started = Broker()
    yield started
    started.end()


def asked(broker: Broker, command: Command) -> Any:
    found: list[Any] = []

    def done(answers: Sequence[Any]) -> None:
        found.extend(answers)

    broker.engine.submit([command], done)
    broker.settle()
    return found[0]


def prepared(broker: Broker) -> int:
    """Return the number of a joint transaction that its transactional id has prepared (KIP-939)."""
    bind = InitProducerId(transactional_id="x", transaction_timeout_ms=1000, two_phase=True)
    pair = asked(broker, bind)
    assert isinstance(pair, ProducerBoundReply)
    who: Any = {
        "transactional_id": "x",
        "producer_id": pair.producer_id,
        "producer_epoch": pair.producer_epoch,
    }
    asked(broker, CreateTopic(topic="k", topic_id=b"k" * 16, partition_count=1))
    asked(broker, AddPartitions(**who, partitions=(("k", 0),)))
    joined = asked(broker, JoinTransaction(**who, transaction=None))
    assert isinstance(joined, TransactionJoinedReply)
    keep = InitProducerId(transactional_id="x", transaction_timeout_ms=1000, two_phase=True, keep_prepared=True)
    assert isinstance(asked(broker, keep), ProducerBoundReply)
    return joined.transaction_id


@pytest.mark.parametrize(("row", "column", "cell"), TABLE.cells())
@pytest.mark.parametrize("adds", ["topics", "a subscription"])
def test_every_cell(broker: Broker, row: str, column: str, cell: str, adds: str) -> None:
    client = ConsumerClient(broker, topic="t")
    match row:
        case "is prepared":
            transaction = prepared(broker)
        case "is unknown":
            transaction = 7_777
        case _:
            transaction = client.begin()
            if row == "has ended":
                client.end(transaction)
    named: Any = {"request_id": 5, "txnid_least_bits": transaction, "txnid_most_bits": 0}
    command: Any
    if adds == "topics":
        command = pb.CommandAddPartitionToTxn(partitions=["t", TOPICS[column]], **named)
    else:
        command = pb.CommandAddSubscriptionToTxn(**named)
        command.subscription.add(topic=TOPICS[column], subscription="s")
    answer = client.answer_to(command)
    if cell == "success":
        assert not answer.HasField("error")
    else:
        assert answer.error == pb.ServerError.Value(cell)
