"""Transactions on a sidecar topic: whole, in the order of their commits, and nobody waits for an open one."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from exacta.config.configuration import Configuration
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.entries import build_entry
from exacta.protocol.pulsar.frames import build_entry_frame
from tests.pulsar.by_hand import Broker, send_frame
from tests.pulsar.consuming import EXCLUSIVE, FAILOVER, KEY_SHARED, SHARED, TYPES, ConsumerClient, produce, producer_of

NAMES = [pb.CommandSubscribe.SubType.Name(kind) for kind in TYPES]
STATS = pb.CommandConsumerStats(request_id=4, consumer_id=1)
LAST_MESSAGE = pb.CommandGetLastMessageId(consumer_id=1, request_id=9)


@pytest.fixture(params=["held", "spilled"])
def broker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    """A broker whose topics are sidecar topics; the state has room for staged streams, or for none."""
    if request.param == "spilled":
        limits = Configuration.limits
        monkeypatch.setattr(Configuration, "limits", lambda self: replace(limits(self), max_held_batches_per_stream=1))
    started = Broker(transaction_buffer="sidecar")
    yield started
    started.end()


def level(name: str) -> list[pb.KeyValue]:
    return [pb.KeyValue(key="isolation.level", value=name)]


def last_message(consumer: ConsumerClient) -> tuple[int, int]:
    found = consumer.answer_to(LAST_MESSAGE).last_message_id
    return found.entry_id, found.batch_index


@pytest.mark.parametrize("kind", TYPES, ids=NAMES)
def test_they_arrive_whole_in_the_order_of_their_commits_and_nobody_waits(broker: Broker, kind: Any) -> None:
    producer, consumer = producer_of(broker), ConsumerClient(broker, kind)
    first, second, aborted = consumer.begin(), consumer.begin(), consumer.begin()
    for number in range(3):
        produce(producer, b"a%d" % number, transaction=first)
        produce(producer, (b"b%d" % number, b"B%d" % number), transaction=second)
        produce(producer, (b"c%d" % number, b"C%d" % number), transaction=aborted)
        produce(producer, b"plain%d" % number)
        assert consumer.values() == [b"plain%d" % number]
    consumer.end(second)
    assert consumer.values() == [b"b0", b"B0", b"b1", b"B1", b"b2", b"B2"]
    consumer.abort(aborted)
    produce(producer, b"plain")
    assert consumer.values() == [b"plain"]
    consumer.end(first)
    pushed = consumer.pushed()
    assert [each.values for each in pushed] == [[b"a0"], [b"a1"], [b"a2"]]
    assert [each.offset for each in pushed] == [10, 11, 12], "no marker, and nothing that was aborted, has an offset"


@pytest.mark.parametrize("kind", TYPES, ids=NAMES)
def test_what_is_not_acknowledged_comes_again(broker: Broker, kind: Any) -> None:
    producer, consumer = producer_of(broker), ConsumerClient(broker, kind)
    transaction = consumer.begin()
    produce(producer, b"a", (b"b", b"c"), b"d", transaction=transaction)
    consumer.end(transaction)
    ids = [each.command.message_id for each in consumer.pushed()]
    assert not consumer.acknowledge(ids[0]).HasField("error")
    consumer.redeliver()
    assert consumer.values() == [b"b", b"c", b"d"]
    consumer.client.vanish()
    broker.settle()
    assert ConsumerClient(broker, kind).values() == [b"b", b"c", b"d"]
    assert ConsumerClient(broker, kind, subscription="new").values() == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("kind", [EXCLUSIVE, FAILOVER, SHARED, KEY_SHARED])
def test_what_it_has_read_and_written_ends_together(broker: Broker, kind: Any, is_committed: bool) -> None:
    producer, consumer = producer_of(broker), ConsumerClient(broker, kind)
    output = ConsumerClient(broker, EXCLUSIVE, topic="out")
    before = consumer.begin()
    produce(producer, (b"a", b"b"), b"c", transaction=before)
    consumer.end(before)
    ids = [each.command.message_id for each in consumer.pushed()]
    transaction = consumer.begin()
    produce(producer_of(broker, "out"), (b"A", b"B"), transaction=transaction)
    assert not consumer.acknowledge(ids[0], transaction=transaction).HasField("error")
    consumer.end(transaction, pb.COMMIT if is_committed else pb.ABORT)
    consumer.client.vanish()
    broker.settle()
    assert output.values() == ([b"A", b"B"] if is_committed else [])
    assert ConsumerClient(broker, kind).values() == ([b"c"] if is_committed else [b"a", b"b", b"c"])


def test_a_large_message_stays_in_one_piece(broker: Broker) -> None:
    producer, consumer = producer_of(broker), ConsumerClient(broker, EXCLUSIVE)
    chunked, other = consumer.begin(), consumer.begin()
    for number in range(3):
        metadata = pb.MessageMetadata(
            producer_name="p",
            sequence_id=5,
            publish_time=1,
            uuid="u",
            chunk_id=number,
            num_chunks_from_msg=3,
            total_chunk_msg_size=3,
        )
        command = pb.CommandSend(producer_id=0, sequence_id=5, txnid_least_bits=chunked, txnid_most_bits=0)
        frame = build_entry_frame(command, build_entry(metadata, b"%d" % number))
        producer.send_bytes(b"".join(map(bytes, frame)))
        broker.settle()
        assert isinstance(producer.answers()[0], pb.CommandSendReceipt)
        produce(producer, b"other", transaction=other)
    consumer.end(chunked)
    consumer.end(other)
    assert consumer.values() == [b"0", b"1", b"2", b"other", b"other", b"other"]


def test_the_backlog_are_the_messages_that_will_still_come(broker: Broker) -> None:
    writer, producer = ConsumerClient(broker, subscription="other", permits=0), producer_of(broker)
    open_one = writer.begin()
    produce(producer, b"open", transaction=open_one)
    for action in (pb.COMMIT, pb.ABORT):
        transaction = writer.begin()
        produce(producer, b"x", (b"y", b"z"), transaction=transaction)
        writer.end(transaction, action)
    produce(producer, b"plain")
    consumer = ConsumerClient(broker, SHARED, permits=2)
    [first, *_] = consumer.pushed()
    told = consumer.answer_to(STATS)
    assert (told.msg_backlog, told.unacked_messages) == (4, 3)
    consumer.acknowledge(first.command.message_id)
    assert consumer.answer_to(STATS).msg_backlog == 3
    writer.end(open_one)
    assert consumer.answer_to(STATS).msg_backlog == 4


@pytest.mark.parametrize("kind", TYPES, ids=NAMES)
def test_read_uncommitted_gets_what_read_committed_gets(broker: Broker, kind: Any) -> None:
    readers = [
        ConsumerClient(broker, kind, subscription=name, durable=False, metadata=level(name))
        for name in ("read_uncommitted", "read_committed")
    ]
    producer, [first, _] = producer_of(broker), readers
    committed, aborted = first.begin(), first.begin()
    produce(producer, b"plain")
    produce(producer, b"a", (b"b", b"c"), transaction=committed)
    produce(producer, b"x", transaction=aborted)

    def assert_both_get(*values: bytes, last: tuple[int, int], backlog: int) -> None:
        for each in readers:
            assert each.values() == list(values)
            assert (last_message(each), each.answer_to(STATS).msg_backlog) == (last, backlog)

    assert_both_get(b"plain", last=(0, -1), backlog=1)
    first.end(committed)
    assert_both_get(b"a", b"b", b"c", last=(2, 1), backlog=4)
    first.abort(aborted)
    assert_both_get(last=(2, 1), backlog=4)


def test_a_topic_goes_on_after_its_transactions_have_gone_aside(broker: Broker) -> None:
    """A consumer that waits behind the last message of a spilled stream gets what follows, and so does one anew."""
    producer, consumer = producer_of(broker), ConsumerClient(broker, EXCLUSIVE)
    for number in range(5):
        transaction = consumer.begin()
        produce(producer, *[b"%d" % number] * 3, transaction=transaction)
        produce(producer, b"plain")
        consumer.end(transaction)
        assert consumer.values() == [b"plain", *[b"%d" % number] * 3]
    wanted = [value for number in range(5) for value in (b"plain", *[b"%d" % number] * 3)]
    assert ConsumerClient(broker, EXCLUSIVE, subscription="new").values() == wanted
    assert ConsumerClient(broker, KEY_SHARED, subscription="few", permits=7).values() == wanted[:7]


def test_they_are_there_after_a_restart(broker: Broker) -> None:
    producer, consumer = producer_of(broker), ConsumerClient(broker, EXCLUSIVE)
    committed, open_one = consumer.begin(), consumer.begin()
    produce(producer, b"a", b"b", transaction=open_one)
    produce(producer, (b"c", b"d"), b"e", transaction=committed)
    consumer.end(committed)
    broker.end()
    again = Broker(transaction_buffer="sidecar", after=broker)
    consumer, producer = ConsumerClient(again, EXCLUSIVE), producer_of(again)
    assert consumer.values() == [b"c", b"d", b"e"]
    produce(producer, b"f", transaction=open_one)
    consumer.end(open_one)
    assert consumer.values() == [b"a", b"b", b"f"]
    again.end()


def test_what_is_too_much_is_refused_for_good() -> None:
    """Any other code than NotAllowedError would have clients send the message again for ever."""
    broker = Broker(transaction_buffer="sidecar", max_staged_bytes=200)
    producer, consumer = producer_of(broker), ConsumerClient(broker, EXCLUSIVE)
    transaction = consumer.begin()
    produce(producer, b"a", transaction=transaction)
    producer.send_bytes(send_frame(b"b" * 200, sequence=1, transaction=transaction))
    broker.settle()
    (refused,) = producer.answers()
    assert isinstance(refused, pb.CommandSendError)
    assert refused.error == pb.ServerError.NotAllowedError
    assert "max.staged.bytes" in refused.message
    consumer.end(transaction)
    assert consumer.values() == [b"a"]
    produce(producer, b"c" * 20, transaction=consumer.begin())
    broker.end()
