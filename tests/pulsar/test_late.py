"""A transaction that somebody else has ended: what comes for it later is refused for ever, and nobody gets it."""

from collections.abc import Iterator
from typing import Any

import pytest

from exacta.protocol.pulsar import messages_pb2 as pb
from tests.pulsar.by_hand import Broker, Client, send_frame
from tests.pulsar.consuming import ConsumerClient, message_id, produce, producer_of

REMEMBERED_MS = 10_000


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker that soon forgets how transactions ended."""
    made = Broker(pulsar_transaction_outcome_retention_ms=REMEMBERED_MS)
    yield made
    made.end()


def late_send(producer: Client, transaction: int, sequence: int) -> Any:
    """Send into the transaction; return the answer."""
    producer.send_bytes(send_frame(b"late", sequence=sequence, transaction=transaction))
    producer._broker.settle()
    [answer] = producer.answers()
    return answer


@pytest.mark.parametrize("action", [pb.COMMIT, pb.ABORT], ids=["commit", "abort"])
def test_what_comes_late_is_refused_for_ever_and_nobody_gets_it(broker: Broker, action: Any) -> None:
    producer, consumer = producer_of(broker), ConsumerClient(broker)
    transaction = consumer.begin()
    produce(producer, b"input", b"more input")
    produce(producer, b"in time", transaction=transaction)
    consumer.acknowledge(message_id(0, 0), transaction=transaction)
    other = ConsumerClient(broker, subscription="other", permits=0)
    assert not other.end(transaction, action).HasField("error")
    consumer.pushed()

    for number, passes_ms in enumerate((0, 0, REMEMBERED_MS + 1)):
        broker.pass_time(passes_ms)
        refused = late_send(producer, transaction, 500 + number)
        assert (type(refused), refused.error) == (pb.CommandSendError, pb.ServerError.NotAllowedError)
        refused = consumer.acknowledge(message_id(0, 1), transaction=transaction)
        is_forgotten = bool(passes_ms)
        expected = pb.ServerError.TransactionNotFound if is_forgotten else pb.ServerError.InvalidTxnStatus
        assert (type(refused), refused.error) == (pb.CommandAckResponse, expected)

    produce(producer, b"after it")
    fresh = ConsumerClient(broker, subscription="fresh")
    in_time = [b"in time"] if action == pb.COMMIT else []
    assert fresh.values() == [b"input", b"more input", *in_time, b"after it"]
    assert consumer.values() == [b"after it"]
    consumer.redeliver()
    input_again = [] if action == pb.COMMIT else [b"input"]
    assert consumer.values() == [*input_again, b"more input", *in_time, b"after it"]
