"""Receipts of staged messages: provisional ids, and what is meant by whoever acknowledges, seeks or reads by one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from exacta.core.commands import DeleteRecords
from exacta.core.ids import Offset
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.message_ids import earliest, entry_offset_of
from tests.docstring_tables import docstring_table
from tests.pulsar.by_hand import Broker, Client, send_frame
from tests.pulsar.consuming import EXCLUSIVE, KEY_SHARED, SHARED, ConsumerClient, produce, producer_of

FIRST = -(1 << 62) + 1
"""The entry id of the first place of a partition."""

LAST_MESSAGE = pb.CommandGetLastMessageId(consumer_id=1, request_id=9)


@contextmanager
def broker_with(**options: Any) -> Iterator[Broker]:
    started = Broker(transaction_buffer="sidecar", **options)
    yield started
    started.end()


@pytest.fixture
def broker() -> Iterator[Broker]:
    with broker_with() as started:
        yield started


def send(client: Client, *values: bytes, transaction: int | None, sequence: int = 0) -> pb.MessageIdData:
    """Send one entry; return the id in its receipt."""
    client.send_bytes(send_frame(*values, transaction=transaction, sequence=sequence))
    client._broker.settle()
    [receipt] = client.answers()
    assert isinstance(receipt, pb.CommandSendReceipt), receipt
    return receipt.message_id


def at(message: pb.MessageIdData, batch_index: int = -1) -> pb.MessageIdData:
    """Return the id of one message of an entry, as clients make it."""
    return pb.MessageIdData(ledger_id=message.ledger_id, entry_id=message.entry_id, batch_index=batch_index)


def before(message: pb.MessageIdData) -> pb.MessageIdData:
    """Return the id before an entry, as clients make it."""
    return pb.MessageIdData(ledger_id=message.ledger_id, entry_id=message.entry_id - 1)


class Interleaved:
    """Two transactions: the second one has written between two entries of the first one, and commits before it."""

    def __init__(self, broker: Broker, kind: Any = EXCLUSIVE, **fields: Any) -> None:
        self.consumer = ConsumerClient(broker, kind, **fields)
        self.producer = producer_of(broker)
        self.first, self.second = self.consumer.begin(), self.consumer.begin()
        self.ids = [
            send(self.producer, b"a", transaction=self.first),
            send(self.producer, b"b", transaction=self.second),
            send(self.producer, b"c", b"d", b"e", transaction=self.first),
            send(self.producer, b"f", transaction=self.second),
        ]

    def commit(self) -> None:
        """Let the messages come to lie as b f a c d e."""
        for transaction in (self.second, self.first):
            assert not self.consumer.end(transaction).HasField("error")

    def left(self) -> list[bytes]:
        """Return what a consumer gets that comes anew."""
        self.consumer.client.vanish()
        self.consumer.broker.settle()
        return ConsumerClient(self.consumer.broker, self.consumer.kind).values()


def test_a_receipt_has_the_number_of_the_partition_and_an_entry_that_no_message_has(broker: Broker) -> None:
    found = Interleaved(broker)
    [ledger] = {each.ledger_id for each in found.ids}
    assert [entry_offset_of(each) for each in found.ids] == [FIRST, FIRST + 2, FIRST + 4, FIRST + 10]
    found.commit()
    ids = [each.command.message_id for each in found.consumer.pushed()]
    assert [(each.ledger_id, each.entry_id) for each in ids] == [(ledger, offset) for offset in (0, 1, 2, 3)]


def test_what_is_sent_outside_of_a_transaction_has_its_own_id(broker: Broker) -> None:
    assert send(producer_of(broker), b"a", transaction=None).entry_id == 0


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, KEY_SHARED])
def test_it_acknowledges_its_entry_wherever_that_lies(broker: Broker, kind: Any) -> None:
    found = Interleaved(broker, kind)
    found.commit()
    assert not found.consumer.acknowledge(found.ids[1], found.ids[2]).HasField("error")
    assert found.left() == [b"f", b"a"]


def test_it_acknowledges_a_part_of_its_entry(broker: Broker) -> None:
    found = Interleaved(broker)
    found.commit()
    part = at(found.ids[2])
    part.ack_set.append(0b101)
    assert not found.consumer.acknowledge(part).HasField("error")
    assert found.left() == [b"b", b"f", b"a", b"c", b"e"]


@pytest.mark.parametrize("request_id", [7, None])
def test_it_acknowledges_cumulatively(broker: Broker, request_id: int | None) -> None:
    found = Interleaved(broker)
    found.commit()
    found.consumer.acknowledge(found.ids[0], cumulative=True, request_id=request_id)
    assert found.left() == [b"c", b"d", b"e"]


def test_the_id_before_it_acknowledges_what_is_before_it_now(broker: Broker) -> None:
    """The message before it when it was sent is of another transaction, and may lie behind all others by now."""
    found = Interleaved(broker)
    for transaction in (found.first, found.second):
        found.consumer.end(transaction)
    assert not found.consumer.acknowledge(before(found.ids[2]), cumulative=True).HasField("error")
    assert found.left() == [b"c", b"d", b"e", b"b", b"f"]
    found.consumer = ConsumerClient(broker, EXCLUSIVE, subscription="other")
    found.consumer.acknowledge(before(found.ids[0]), cumulative=True)
    assert found.consumer.values() == [b"a", b"c", b"d", b"e", b"b", b"f"]


@pytest.mark.parametrize("is_cumulative", [False, True])
def test_it_acknowledges_in_a_transaction(broker: Broker, is_cumulative: bool) -> None:
    found = Interleaved(broker)
    found.commit()
    transaction = found.consumer.begin()
    answer = found.consumer.acknowledge(found.ids[1], cumulative=is_cumulative, transaction=transaction)
    assert not answer.HasField("error")
    again = found.consumer.acknowledge(found.ids[1], cumulative=is_cumulative, transaction=found.consumer.begin())
    assert again.error == pb.ServerError.TransactionConflict
    found.consumer.end(transaction)
    assert found.left() == [b"f", b"a", b"c", b"d", b"e"]


def test_it_gives_its_entry_back(broker: Broker) -> None:
    found = Interleaved(broker, SHARED)
    found.commit()
    assert found.consumer.values() == [b"b", b"f", b"a", b"c", b"d", b"e"]
    found.consumer.redeliver(found.ids[2])
    assert found.consumer.values() == [b"c", b"d", b"e"]


@pytest.mark.parametrize(
    ("number", "index", "wanted"), [(0, -1, b"acde"), (2, -1, b"cde"), (2, 1, b"de"), (3, 0, b"facde")]
)
def test_a_seek_goes_to_its_message(broker: Broker, number: int, index: int, wanted: bytes) -> None:
    found = Interleaved(broker)
    found.commit()
    consumer = found.consumer
    consumer.client.send(pb.CommandSeek(consumer_id=1, request_id=5, message_id=at(found.ids[number], index)))
    broker.settle()
    assert [type(each) for each in consumer.told()] == [pb.CommandCloseConsumer, pb.CommandSuccess]
    assert b"".join(found.left()) == wanted


@pytest.mark.parametrize(("number", "index", "wanted"), [(0, -1, b"acde"), (2, 2, b"e"), (3, -1, b"facde")])
def test_a_reader_begins_at_its_message(broker: Broker, number: int, index: int, wanted: bytes) -> None:
    found = Interleaved(broker)
    found.commit()
    start = at(found.ids[number], index)
    reader = ConsumerClient(broker, EXCLUSIVE, subscription="r", durable=False, start_message_id=start)
    assert b"".join(reader.values()) == wanted


def test_its_message_is_before_the_last_one_for_clients_that_compare(broker: Broker) -> None:
    """So `hasMessageAvailable` is true for a reader that begins at it."""
    found = Interleaved(broker)
    found.commit()
    last = found.consumer.answer_to(LAST_MESSAGE).last_message_id
    for each in found.ids:
        assert earliest().ledger_id - 2**64 < each.ledger_id == last.ledger_id
        assert entry_offset_of(each) < entry_offset_of(last) == 3


def asks(message: pb.MessageIdData, transaction: int) -> list[Any]:
    """Return every command that is answered and names a message."""
    ack: dict[str, Any] = {"consumer_id": 1, "request_id": 7, "message_id": [message]}
    in_transaction: dict[str, Any] = {"txnid_least_bits": transaction, "txnid_most_bits": 0}
    return [
        pb.CommandAck(ack_type=pb.CommandAck.Individual, **ack),
        pb.CommandAck(ack_type=pb.CommandAck.Cumulative, **ack),
        pb.CommandAck(ack_type=pb.CommandAck.Individual, **ack, **in_transaction),
        pb.CommandAck(ack_type=pb.CommandAck.Cumulative, **ack, **in_transaction),
        pb.CommandSeek(consumer_id=1, request_id=7, message_id=message),
        pb.CommandSubscribe(
            topic="t",
            subscription="r",
            sub_type=EXCLUSIVE,
            consumer_id=2,
            request_id=7,
            durable=False,
            start_message_id=message,
        ),
    ]


TABLE = docstring_table("exacta.pulsar.provisional_ids", "the message's transaction")
GONE = "has committed, but it is gone"
ROWS = {"open": "is open", "aborted": "was aborted", "deleted": GONE, "never": GONE}


def test_the_table_is_complete() -> None:
    """The tests above mean a message that is there by its own id."""
    assert TABLE.rows.keys() == {"has committed", *ROWS.values()}
    assert set(TABLE.rows["has committed"]) == {"its own id"}


@pytest.mark.parametrize("became", ROWS)
def test_one_whose_message_is_not_there_is_refused_and_nothing_changes(broker: Broker, became: str) -> None:
    found = Interleaved(broker)
    named, text = found.ids[2], "aborted, or is not there any more"
    wanted = [b"b", b"f"]
    found.consumer.end(found.second)
    if became == "open":
        text = "has not committed yet"
    elif became == "aborted":
        found.consumer.abort(found.first)
    elif became == "deleted":
        found.consumer.end(found.first)
        named, wanted = found.ids[1], [b"f", b"a", b"c", b"d", b"e"]
        broker.engine.submit([DeleteRecords(topic="t", partition=0, before_offset=Offset(1))], lambda answers: None)
        broker.settle()
    else:
        named.entry_id += 1000
    other = found.consumer.begin()
    for ask in asks(named, other):
        refused = found.consumer.answer_to(ask)
        error = pb.ServerError.Value(TABLE[ROWS[became], "ACK with an answer, SEEK, SUBSCRIBE"])
        assert (refused.error, text in refused.message) == (error, True), (ask, refused)
    assert TABLE[ROWS[became], "ACK without one, REDELIVER"] == "passed over"
    for cumulative in (False, True):
        found.consumer.acknowledge(named, cumulative=cumulative, request_id=None)
    found.consumer.redeliver(named)
    assert not found.consumer.client.is_closing()
    assert found.left() == wanted


def test_one_of_several_that_is_not_there_refuses_the_acknowledgement(broker: Broker) -> None:
    found = Interleaved(broker)
    found.consumer.end(found.second)
    refused = found.consumer.acknowledge(found.ids[1], found.ids[0])
    assert refused.error == pb.ServerError.NotAllowedError
    found.consumer.acknowledge(found.ids[1], found.ids[0], request_id=None)
    assert found.left() == [b"f"], "nobody is told, so that what is there is acknowledged"


def test_one_of_another_topic_names_nothing(broker: Broker) -> None:
    found = Interleaved(broker)
    other = ConsumerClient(broker, EXCLUSIVE, topic="u")
    produce(producer_of(broker, "u"), b"x")
    assert not other.acknowledge(found.ids[0]).HasField("error")
    assert other.acknowledge(found.ids[0], transaction=other.begin()).error == pb.ServerError.NotAllowedError
    assert other.values() == [b"x"]


def test_it_is_understood_after_a_restart(broker: Broker) -> None:
    found = Interleaved(broker)
    found.commit()
    broker.end()
    with broker_with(after=broker) as again:
        consumer = ConsumerClient(again, EXCLUSIVE)
        consumer.acknowledge(found.ids[0], cumulative=True)
        found.consumer = consumer
        assert found.left() == [b"c", b"d", b"e"]


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("is_committed", [True, False])
def test_a_repeat_is_dropped_and_answered_as_on_any_topic(broker: Broker, is_named: bool, is_committed: bool) -> None:
    consumer, client = ConsumerClient(broker, EXCLUSIVE), broker.connect()
    name: dict[str, Any] = {"producer_name": "n" if is_named else "", "user_provided_producer_name": is_named}
    opened = client.ask(pb.CommandProducer(topic="t", producer_id=0, request_id=1, **name))
    transaction = consumer.begin()
    send(client, b"a", b"b", transaction=transaction)
    if is_committed:
        consumer.end(transaction)
    again = broker.connect()
    client.vanish()
    broker.settle()
    name["producer_name"] = opened.producer_name
    again.ask(pb.CommandProducer(topic="t", producer_id=0, request_id=1, epoch=1, **name))
    if is_committed and not is_named:  # what is sent to a transaction that has ended is refused
        again.send_bytes(send_frame(b"a", b"b", transaction=transaction))
        broker.settle()
        assert again.answers()[0].error == pb.ServerError.NotAllowedError
    else:
        repeat = send(again, b"a", b"b", transaction=None if is_committed else transaction)
        assert (repeat.ledger_id, repeat.entry_id) == (2**64 - 1, 2**64 - 1)
        assert entry_offset_of(send(again, b"c", transaction=consumer.begin(), sequence=2)) == FIRST + 4
    consumer.end(transaction)
    assert consumer.values() == [b"a", b"b"]
