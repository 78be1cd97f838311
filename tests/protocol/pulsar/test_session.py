"""A client's session: what it sends, read by hand, and which answers it knows."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.text_format import MessageToString

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import NO_REQUEST, unwrapped
from exacta.protocol.pulsar.entries import check_entry, parse_entry, walk_batch
from exacta.protocol.pulsar.errors import BrokenFrame
from exacta.protocol.pulsar.frames import SIZE_BYTES, build_entry_frame, build_frame, parse_frame
from exacta.protocol.pulsar.message_ids import message_id
from exacta.protocol.pulsar.session import Outgoing, Session, entry_of_values, error_of

ID = message_id(7, 3)
ENTRY = entry_of_values([b"a", b"b"], 4, 1, producer="p")

SENT: list[tuple[Callable[[Session], Outgoing], str]] = [
    (lambda session: session.open_producer("t"), 'topic: "t" producer_id: 0 request_id: 1 producer_name: ""'),
    (
        lambda session: session.open_producer("t", 3, "p", encrypted=True),
        'topic: "t" producer_id: 3 request_id: 1 producer_name: "p" encrypted: true user_provided_producer_name: true',
    ),
    (
        lambda session: session.subscribe("t", "s", 2, pb.CommandSubscribe.Shared),
        'topic: "t" subscription: "s" sub_type: Shared consumer_id: 2 request_id: 1 initial_position: Earliest',
    ),
    (lambda session: session.flow(2, 10), "consumer_id: 2 message_permits: 10"),
    (lambda session: session.acknowledge(2, [ID], answered=False), "consumer_id: 2 ack_type: Individual"),
    (
        lambda session: session.acknowledge(2, [ID], cumulative=True, transaction=5),
        "consumer_id: 2 ack_type: Cumulative txnid_least_bits: 5 txnid_most_bits: 0 request_id: 1",
    ),
    (lambda session: session.begin(9), "request_id: 1 txn_ttl_millis: 9 tc_id: 0"),
    (
        lambda session: session.add_partitions(5, ["t", "u"]),
        'request_id: 1 txnid_least_bits: 5 txnid_most_bits: 0 partitions: "t" partitions: "u"',
    ),
    (
        lambda session: session.add_subscriptions(5, "t", "s"),
        'request_id: 1 txnid_least_bits: 5 txnid_most_bits: 0 subscription { topic: "t" subscription: "s" }',
    ),
    (
        lambda session: session.end(5, commit=True),
        "request_id: 1 txnid_least_bits: 5 txnid_most_bits: 0 txn_action: COMMIT",
    ),
    (
        lambda session: session.end(5, commit=False),
        "request_id: 1 txnid_least_bits: 5 txnid_most_bits: 0 txn_action: ABORT",
    ),
    (lambda session: session.request(pb.CommandLookupTopic(topic="t")), 'topic: "t" request_id: 1'),
    (
        lambda session: session.send(ENTRY, 4, 2, producer_id=3, transaction=5),
        "producer_id: 3 sequence_id: 4 num_messages: 2 txnid_least_bits: 5 txnid_most_bits: 0 highest_sequence_id: 5",
    ),
]


@pytest.mark.parametrize(("made", "expected"), SENT)
def test_what_is_sent(made: Callable[[Session], Outgoing], expected: str) -> None:
    out = made(Session("tester"))
    frame = parse_frame(out.data[SIZE_BYTES:])
    command: Any = unwrapped(frame.command)
    text = MessageToString(command, as_one_line=True)
    assert all(field in text for field in re.split(r" (?=\w+:)", expected)), text
    if isinstance(command, pb.CommandSend):
        assert (bytes(frame.entry or b""), out.key) == (ENTRY, (3, 4))
    else:
        assert out.key == (1 if "request_id: 1" in expected else None)
    if isinstance(command, pb.CommandAck):
        assert list(command.message_id) == [ID]
        assert command.HasField("request_id") is (out.key is not None)


def test_request_ids_go_on_over_connections() -> None:
    session = Session("tester", 15)
    keys = [session.connect().key, session.begin(1).key, session.connect().key, session.begin(1).key]
    assert keys == [0, 1, 0, 2]
    connect = unwrapped(parse_frame(session.connect().data[SIZE_BYTES:]).command)
    assert connect == pb.CommandConnect(client_version="tester", protocol_version=15)


RECEIVED: list[tuple[Message, object]] = [
    (pb.CommandConnected(server_version="x"), 0),
    (pb.CommandError(request_id=NO_REQUEST, error="AuthenticationError", message="no"), 0),
    (pb.CommandError(request_id=8, error="ProducerBusy", message="no"), 8),
    (pb.CommandSuccess(request_id=9), 9),
    (pb.CommandAckResponse(consumer_id=1, request_id=3), 3),
    (pb.CommandSendReceipt(producer_id=3, sequence_id=4), (3, 4)),
    (pb.CommandSendError(producer_id=3, sequence_id=5, error="ChecksumError", message="no"), (3, 5)),
    (pb.CommandCloseProducer(producer_id=3, request_id=NO_REQUEST), None),
    (pb.CommandCloseConsumer(consumer_id=3, request_id=NO_REQUEST), None),
    (pb.CommandActiveConsumerChange(consumer_id=3, is_active=True), None),
    (pb.CommandPing(), None),
    (pb.CommandMessage(consumer_id=3, message_id=ID), None),
]


def framed(command: Message) -> bytes:
    if isinstance(command, pb.CommandMessage):
        return b"".join(map(bytes, build_entry_frame(command, ENTRY)))
    return build_frame(command)


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_what_comes_is_known_however_it_is_cut(size: int) -> None:
    data = b"".join(framed(command) for command, _ in RECEIVED)
    session = Session("tester")
    found = [each for at in range(0, len(data), size) for each in session.receive_data(data[at : at + size])]
    assert [(each.command, each.key) for each in found] == RECEIVED
    assert [each.reply for each in found if each.reply] == [build_frame(pb.CommandPong())]
    assert [bytes(each.entry) for each in found if each.entry is not None] == [ENTRY]


def test_a_new_connection_begins_with_nothing() -> None:
    session = Session("tester")
    assert session.receive_data(build_frame(pb.CommandPong())[:-1]) == []
    session.connect()
    assert [each.command for each in session.receive_data(build_frame(pb.CommandPing()))] == [pb.CommandPing()]


def test_nonsense_is_a_broken_frame() -> None:
    with pytest.raises(BrokenFrame):
        Session("tester").receive_data(b"\xff" * 20)


@pytest.mark.parametrize("values", [[b"a"], [b"a", b"b", b"c"]])
def test_an_entry_is_as_the_command_says(values: list[bytes]) -> None:
    entry = entry_of_values(values, 4, 1_000, producer="p", partition_key=b"k")
    send = unwrapped(parse_frame(Session.send(entry, 4, len(values)).data[SIZE_BYTES:]).command)
    assert isinstance(send, pb.CommandSend)
    parsed = parse_entry(entry)
    check_entry(parsed, send)
    assert (parsed.metadata.producer_name, parsed.metadata.sequence_id) == ("p", 4)
    assert (parsed.metadata.publish_time, parsed.metadata.partition_key) == (1_000, b"k")
    assert parsed.metadata.highest_sequence_id == send.highest_sequence_id
    if len(values) == 1:
        assert bytes(parsed.payload) == values[0]
    else:
        batch = list(walk_batch(parsed.payload, len(values)))
        assert [bytes(each.payload) for each in batch] == values
        assert [each.metadata.sequence_id for each in batch] == [4, 5, 6]


def test_an_error_is_found_where_there_may_be_one() -> None:
    assert error_of(pb.CommandError(request_id=1, error="ProducerBusy", message="")) == pb.ServerError.ProducerBusy
    assert error_of(pb.CommandEndTxnResponse(request_id=1)) is None
    assert error_of(pb.CommandSuccess(request_id=1)) is None
