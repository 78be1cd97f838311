"""SENDs: receipts in order, repeats, what is refused, and topics that go."""

from confluent_kafka.admin import AdminClient

import exacta
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.message_ids import EARLIEST_NUMBER
from exacta.protocol.pulsar.session import Session, entry_of_values
from tests.pulsar.by_hand import send_frame
from tests.pulsar.wire import Wire, running, stored


def place(receipt: pb.CommandSendReceipt) -> tuple[int, int, int]:
    return receipt.message_id.ledger_id, receipt.message_id.entry_id, receipt.message_id.partition


def test_entries_lie_at_offsets_and_receipts_name_them(broker: exacta.Broker, wire: Wire) -> None:
    wire.open_producer("t")
    first = wire.produce(b"one")
    second = wire.produce(b"a", b"b", b"c", sequence=1)
    third = wire.produce(b"two", sequence=4)
    assert [receipt.message_id.entry_id for receipt in (first, second, third)] == [0, 1, 4]
    assert (second.sequence_id, second.highest_sequence_id) == (1, 3)
    assert place(first)[2] == -1
    broker.stop()
    found = stored(broker.data, "t")
    assert [(offset, entry.message_count) for offset, entry in found.entries] == [(0, 1), (1, 3), (4, 1)]
    assert found.payloads()[0] == b"one"
    assert [header.max_timestamp for header in found.headers] == [1_700_000_000_000] * 3


def test_the_receipts_of_one_read_come_in_the_order_of_the_sends(wire: Wire) -> None:
    """One write into a transaction could be answered sooner than the plain one before it."""
    wire.open_producer("t")
    begun = wire.begin()
    frames = [
        send_frame(b"x", sequence=number, transaction=begun.txnid_least_bits if number % 2 else None)
        for number in range(100)
    ]
    frames[50] = frames[50][:-1] + bytes([frames[50][-1] ^ 1])
    wire.send_bytes(b"".join(frames))
    answers = [wire.receive() for _ in frames]
    assert [answer.sequence_id for answer in answers] == list(range(100))
    assert (type(answers[50]), answers[50].error) == (pb.CommandSendError, pb.ServerError.ChecksumError)
    assert [place(each)[1] for each in answers if isinstance(each, pb.CommandSendReceipt)] == list(range(99))


def test_the_repeats_of_a_named_producer_are_dropped_also_after_a_restart() -> None:
    with running() as broker:
        wire = Wire(broker.pulsar_url)
        wire.open_producer("t", name="p")
        assert place(wire.produce(b"a", b"b", sequence=0))[1] == 0
        again = wire.produce(b"a", b"b", sequence=0)
        assert place(again) == (EARLIEST_NUMBER, EARLIEST_NUMBER, -1)
        broker.restart(clean=False)
        wire.close()
        wire = Wire(broker.pulsar_url)
        assert wire.open_producer("t", name="p").last_sequence_id == 1
        wire.send_bytes(
            send_frame(b"a", b"b", sequence=0) + send_frame(b"c", sequence=2) + send_frame(b"c", sequence=2)
        )
        assert [place(wire.receive())[1] for _ in range(3)] == [EARLIEST_NUMBER, 2, EARLIEST_NUMBER]
        wire.close()
        broker.stop()
        assert [offset for offset, _ in stored(broker.data, "t").entries] == [0, 2]


def test_the_repeats_of_a_producer_without_a_name_of_its_own_are_kept(broker: exacta.Broker, wire: Wire) -> None:
    wire.open_producer("t")
    assert [place(wire.produce(b"a", sequence=0))[1] for _ in range(2)] == [0, 1]


def test_a_batch_that_is_stored_in_part_is_refused_and_not_lost_in_silence(wire: Wire) -> None:
    wire.open_producer("t", name="p")
    wire.produce(b"a", b"b", sequence=0)
    refused = wire.produce(b"b", b"c", sequence=1)
    assert (type(refused), refused.error) == (pb.CommandSendError, pb.ServerError.NotAllowedError)
    assert place(wire.produce(b"c", sequence=2))[1] == 2


def test_what_is_sent_in_one_read_is_compared_with_what_came_before_it_there(wire: Wire) -> None:
    wire.open_producer("t", name="p")
    batches = [(b"a", b"b"), (b"b", b"c"), (b"a", b"b"), (b"c", b"d")]
    frames = [send_frame(*each, sequence=number) for each, number in zip(batches, (0, 1, 0, 2), strict=True)]
    wire.send_bytes(b"".join(frames))
    answers = [wire.receive() for _ in frames]
    receipts = [place(each)[1] for each in answers if isinstance(each, pb.CommandSendReceipt)]
    assert receipts == [0, EARLIEST_NUMBER, 2]
    assert (type(answers[1]), answers[1].error) == (pb.CommandSendError, pb.ServerError.NotAllowedError)
    assert "stored already" in answers[1].message


def test_the_client_for_cpp_gives_up_a_batch_that_is_stored_in_part(broker: exacta.Broker) -> None:
    """It would send the batch again for ever after any other error."""
    wire = Wire(broker.pulsar_url, connects=False)
    wire.ask(pb.CommandConnect(client_version="Pulsar-CPP-v3.7.0", protocol_version=20))
    wire.open_producer("t", name="p")
    wire.produce(b"a", b"b", sequence=0)
    assert wire.produce(b"b", b"c", sequence=1).error == pb.ServerError.ChecksumError
    wire.close()


def part_frame(number: int, count: int, sequence: int) -> bytes:
    """Build the frame of a SEND that has one part of a large message."""
    part = {"uuid": "u", "chunk_id": number, "num_chunks_from_msg": count, "total_chunk_msg_size": count}
    return Session.send(entry_of_values([b"%d" % number], sequence, 1, producer="p", **part), sequence).data


def test_the_parts_of_a_large_message_are_repeats_once_the_last_one_is_stored(wire: Wire) -> None:
    wire.open_producer("t", name="p")
    parts = [part_frame(number, 3, 5) for number in range(3)]
    for sent, expected in ((parts[:2], [0, 1]), (parts, [2, 3, 4]), (parts, [EARLIEST_NUMBER] * 3)):
        wire.send_bytes(b"".join(sent))
        assert [place(wire.receive())[1] for _ in sent] == expected


def test_an_entry_that_cannot_be_true_is_refused(wire: Wire) -> None:
    wire.open_producer("t")
    frame = send_frame(b"a", b"b")
    short = send_frame(b"a")
    assert len(frame) > len(short)
    refused = wire.ask(wire.session.send(entry_of_values([b"x"], 0, 1, producer="p", marker_type=1), 0))
    assert (type(refused), refused.error) == (pb.CommandSendError, pb.ServerError.NotAllowedError)
    assert "marker" in refused.message


def test_the_producers_of_a_topic_that_is_deleted_are_closed_and_may_open_again(
    broker: exacta.Broker, wire: Wire
) -> None:
    ledger = None
    wire.open_producer("t", name="p")
    ledger = place(wire.produce(b"a"))[0]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for deleted in admin.delete_topics(["t"]).values():
        deleted.result(20)
    wire.send_bytes(send_frame(b"b", sequence=1) + send_frame(b"c", sequence=2))
    closed = wire.receive()
    assert (type(closed), closed.producer_id) == (pb.CommandCloseProducer, 0)
    assert wire.open_producer("t", name="p").last_sequence_id == -1
    assert place(wire.produce(b"b", sequence=1))[0] != ledger


def test_a_topics_own_limit_refuses(broker: exacta.Broker, wire: Wire) -> None:
    from confluent_kafka.admin import NewTopic

    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    [created] = admin.create_topics([NewTopic("small", 1, config={"max.message.bytes": "100"})]).values()
    created.result(20)
    wire.open_producer("small", 1)
    assert "limit of 100" in wire.produce(b"x" * 200, number=1).message
    assert isinstance(wire.produce(b"x", number=1), pb.CommandSendReceipt)
