"""Frames with bytes that were changed: nothing fails here, nobody else is harmed, and nothing is left behind."""

import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.frames import build_frame
from tests.pulsar.by_hand import Broker, send_frame
from tests.shares import examples

ID: dict[str, Any] = {"request_id": 5}
TXN = {"request_id": 5, "txnid_least_bits": 0, "txnid_most_bits": 0}
SCHEMA = pb.Schema(name="s", schema_data=b"", type=pb.Schema.String)

FRAMES = [
    send_frame(b"one"),
    send_frame(b"one", b"two", sequence=3),
    send_frame(b"inside", transaction=0),
    send_frame(b"inside", b"batch", sequence=9, transaction=0),
    *map(
        build_frame,
        (
            pb.CommandPing(),
            pb.CommandPong(),
            pb.CommandProducer(topic="t", producer_id=1, producer_name="p", **ID),
            pb.CommandProducer(topic="persistent://a/b/c-partition-0", producer_id=2, schema=SCHEMA, **ID),
            pb.CommandCloseProducer(producer_id=0, **ID),
            pb.CommandPartitionedTopicMetadata(topic="u", **ID),
            pb.CommandLookupTopic(topic="u", **ID),
            pb.CommandTcClientConnectRequest(tc_id=0, **ID),
            pb.CommandNewTxn(txn_ttl_millis=10_000, tc_id=0, **ID),
            pb.CommandAddPartitionToTxn(partitions=["t", "u"], **TXN),
            pb.CommandAddSubscriptionToTxn(subscription=[pb.Subscription(topic="t", subscription="s")], **TXN),
            pb.CommandEndTxn(txn_action=pb.TxnAction.COMMIT, **TXN),
            pb.CommandSubscribe(topic="t", subscription="s", sub_type=pb.CommandSubscribe.Shared, consumer_id=1, **ID),
            pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Individual, **ID),
            pb.CommandGetSchema(topic="t", **ID),
        ),
    ),
]


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """Return a frame in which up to two bytes differ, its size not among them."""
    frame = bytearray(draw(st.sampled_from(FRAMES)))
    for _ in range(draw(st.integers(0, 2))):
        frame[draw(st.integers(4, len(frame) - 1))] = draw(st.integers(0, 255))
    return bytes(frame)


@pytest.mark.parametrize("strict", ["idempotent", "strict"])
@given(frames=st.lists(changed(), min_size=1, max_size=8))
@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_changed_frames_are_answered_or_end_their_connection(
    caplog: pytest.LogCaptureFixture, strict: str, frames: list[bytes]
) -> None:
    caplog.clear()
    broker = Broker(pulsar_transaction_repeat=strict)
    client, other = broker.connect(), broker.connect()
    client.ask(pb.CommandProducer(topic="t", producer_id=0, request_id=1, user_provided_producer_name=False))
    with caplog.at_level(logging.ERROR):
        client.send_bytes(b"".join(frames))
        broker.settle()
    assert caplog.records == []
    client.answers()
    assert isinstance(other.ask(pb.CommandPing()), pb.CommandPong)
    broker.end()
