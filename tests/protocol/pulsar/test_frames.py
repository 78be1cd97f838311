"""Frames against those that a real client has sent, and against every cut and every flipped byte of them."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import unwrapped
from exacta.protocol.pulsar.entries import build_entry, parse_entry
from exacta.protocol.pulsar.errors import BrokenEntry, BrokenFrame
from exacta.protocol.pulsar.frames import (
    LARGEST_COMMAND,
    Frame,
    build_entry_frame,
    build_frame,
    frame_at,
    parse_frame,
)
from tests.protocol.pulsar import recorded

METADATA = pb.MessageMetadata(producer_name="tills", sequence_id=1, publish_time=1000)
MESSAGE = pb.CommandMessage(consumer_id=3, message_id=pb.MessageIdData(ledger_id=1, entry_id=2))
PUSHED = b"".join(
    build_entry_frame(MESSAGE, build_entry(METADATA, b"apples"), broker_entry=pb.BrokerEntryMetadata(index=9))
)
"""A MESSAGE with all that a frame can have."""

SAMPLES = [*recorded.ALL, PUSHED[4:]]


def parse_or_refuse(frame: bytes) -> Frame | None:
    """Read a frame and its entry; None for what is refused. Any other exception fails the test."""
    try:
        found = parse_frame(frame)
    except BrokenFrame:
        return None
    build_frame(unwrapped(found.command))  # what is read can be written
    if found.entry is not None:
        try:
            parse_entry(found.entry)
        except BrokenEntry:
            return None
    return found


def test_what_a_client_sent_is_read() -> None:
    connect, lookup, producer = (unwrapped(parse_frame(each).command) for each in recorded.ALL[:3])
    assert isinstance(connect, pb.CommandConnect)
    assert (connect.client_version, connect.protocol_version) == ("Pulsar-CPP-v4.2.0", 20)
    assert connect.feature_flags.supports_broker_entry_metadata
    assert isinstance(lookup, pb.CommandLookupTopic)
    assert (lookup.topic, lookup.request_id) == ("persistent://public/default/orders", 2)
    assert isinstance(producer, pb.CommandProducer)
    assert (producer.producer_name, producer.user_provided_producer_name) == ("tills", True)
    subscribe, flow, ack, close = (unwrapped(parse_frame(each).command) for each in recorded.ALL[6:])
    assert isinstance(subscribe, pb.CommandSubscribe)
    assert (subscribe.subscription, subscribe.sub_type) == ("pickers", pb.CommandSubscribe.Shared)
    assert [(pair.key, pair.value) for pair in subscribe.metadata] == [("a", "b")]
    assert isinstance(flow, pb.CommandFlow)
    assert flow.message_permits == 1000
    assert isinstance(ack, pb.CommandAck)
    assert [(each.ledger_id, each.entry_id) for each in ack.message_id] == [(7, 0), (7, 1)]
    assert not ack.HasField("request_id")
    assert isinstance(close, pb.CommandCloseConsumer)


@pytest.mark.parametrize("frame", recorded.ALL, ids=lambda frame: f"command-{frame[5]}")
def test_what_a_client_sent_is_built_again_bit_for_bit(frame: bytes) -> None:
    found = parse_frame(frame)
    whole = struct.pack(">I", len(frame)) + frame
    if found.entry is None:
        assert build_frame(unwrapped(found.command)) == whole
    else:
        assert b"".join(build_entry_frame(unwrapped(found.command), found.entry)) == whole


def test_a_pushed_entry_is_a_view_and_has_the_brokers_metadata() -> None:
    frame = frame_at(PUSHED)
    assert frame is not None
    found = parse_frame(frame)
    assert (found.broker_entry, unwrapped(found.command)) == (pb.BrokerEntryMetadata(index=9), MESSAGE)
    assert found.entry is not None
    assert found.entry.obj is PUSHED
    assert bytes(found.entry) == build_entry(METADATA, b"apples")


@pytest.mark.parametrize("frame", SAMPLES, ids=lambda frame: f"command-{frame[5]}")
def test_every_cut_is_refused(frame: bytes) -> None:
    for end in range(len(frame)):
        assert parse_or_refuse(frame[:end]) is None, end


@pytest.mark.parametrize("frame", SAMPLES, ids=lambda frame: f"command-{frame[5]}")
def test_every_flipped_byte_is_refused_or_read(frame: bytes) -> None:
    """In a command a flipped byte may mean something else; in an entry the checksum tells."""
    entry = parse_frame(frame).entry
    begins_at = len(frame) - len(entry) + 2 if entry else len(frame)  # what flips the two before makes no checksum
    for at in range(len(frame)):
        for flip in (0x01, 0x08, 0x80, 0xFF):
            broken = bytearray(frame)
            broken[at] ^= flip
            found = parse_or_refuse(bytes(broken))
            assert found is None or at < begins_at, (at, flip)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    parse_or_refuse(data)
    for size in (len(data), 2):
        parse_or_refuse(struct.pack(">I", size) + data)


@given(st.lists(st.sampled_from(SAMPLES), max_size=5), st.data())
def test_frames_are_cut_wherever_the_bytes_end(frames: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(struct.pack(">I", len(frame)) + frame for frame in frames)
    end = data.draw(st.integers(0, len(stream)))
    at, found = 0, []
    while (frame := frame_at(stream[:end], at)) is not None:
        found.append(bytes(frame))
        at += 4 + len(frame)
    assert found == frames[: len(found)]
    assert end - at < 4 or end - at < 4 + len(frames[len(found)])


@pytest.mark.parametrize(
    ("size", "reason"), [(3, "a frame of 3 bytes"), (6 << 20, "a frame of 6291456 bytes"), (2**32 - 1, "a frame of")]
)
def test_a_frame_of_a_size_that_none_has_is_refused_at_once(size: int, reason: str) -> None:
    with pytest.raises(BrokenFrame, match=reason):
        frame_at(struct.pack(">I", size))


def framed(command: bytes, behind: bytes = b"") -> bytes:
    return struct.pack(">I", len(command)) + command + behind


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (framed(b"\x08\x12\x92\x01\x00", b"x"), "1 bytes behind a command that brings no entry"),
        (framed(b"\x08\x12"), "says that it is PING"),
        (framed(b"\x08\x12\x9a\x01\x00"), "says that it is PING"),  # and is PONG
        (framed(b"\x08\x46"), "type of BaseCommand is missing"),  # 70, of a protocol that is not served
        (framed(b"\x08\x06\x32\x04\x08\x00\x10\x00"), "an entry of no bytes"),
        (framed(b"\x08\x0b\x5a\x02\x08\x00"), "message_permits of BaseCommand is missing"),
        (framed(b"\x08\x17\xba\x01\x05\x0a\x01\xff\x10\x02"), "UTF-8"),
        (framed(bytes(LARGEST_COMMAND + 1)), "at most"),
    ],
)
def test_a_command_that_is_none_is_refused(frame: bytes, reason: str) -> None:
    with pytest.raises(BrokenFrame, match=reason):
        parse_frame(frame)


def nested(field: int, data: bytes) -> bytes:
    """Return a field that holds a message of at most two million bytes."""
    size = len(data)
    return bytes([*_varint(field << 3 | 2), size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + data


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80, number >> 7])


def test_ids_in_ids_do_not_end_the_stack() -> None:
    message_id = b"\x08\x00\x10\x00"
    for _ in range(1000):
        message_id = b"\x08\x00\x10\x00" + nested(7, message_id)
    seek = b"\x08\x00\x10\x00" + nested(3, message_id)
    with pytest.raises(BrokenFrame, match="not a command"):
        parse_frame(framed(b"\x08\x1c" + nested(28, seek)))
