"""The connection: the handshake, what becomes of nonsense, and commands that are not served."""

import struct
from typing import Any

import pytest

import exacta
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.commands import PROTOCOL_VERSION
from exacta.protocol.pulsar.frames import build_frame
from tests.pulsar.by_hand import send_frame
from tests.pulsar.wire import Wire


@pytest.mark.parametrize(
    ("theirs", "expected"), [(19, 19), (PROTOCOL_VERSION, PROTOCOL_VERSION), (99, PROTOCOL_VERSION)]
)
def test_the_lesser_version_is_spoken(broker: exacta.Broker, theirs: int, expected: int) -> None:
    wire = Wire(broker.pulsar_url, version=theirs)
    assert wire.connected.protocol_version == expected
    assert wire.connected.max_message_size == 5 << 20
    assert wire.connected.feature_flags.supports_get_partitioned_metadata_without_auto_creation
    assert not wire.connected.feature_flags.supports_topic_watchers
    wire.close()


def test_ping_is_answered_and_pong_is_taken(wire: Wire) -> None:
    wire.send(pb.CommandPong(), pb.CommandPing())
    assert isinstance(wire.receive(), pb.CommandPong)


@pytest.mark.parametrize(
    "data",
    [
        build_frame(pb.CommandPing()),
        struct.pack(">I", 100 << 20),
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">II", 8, 4) + b"junk",
    ],
    ids=["no CONNECT", "too large", "HTTP", "no command"],
)
def test_a_connection_that_begins_with_nonsense_ends(broker: exacta.Broker, data: bytes) -> None:
    wire = Wire(broker.pulsar_url, connects=False)
    wire.send_bytes(data)
    assert wire.is_closed()
    wire.close()


@pytest.mark.parametrize(
    "data",
    [
        build_frame(pb.CommandConnect(client_version="again")),
        build_frame(pb.CommandSuccess(request_id=1)),
        send_frame(b"x", number=7),
    ],
    ids=["CONNECT twice", "a broker's command", "a producer that is not open"],
)
def test_a_connection_that_goes_on_with_nonsense_ends(wire: Wire, data: bytes) -> None:
    wire.send_bytes(data)
    assert wire.is_closed()


@pytest.mark.parametrize(
    "command",
    [
        pb.CommandUnsubscribe(consumer_id=1, request_id=5),
        pb.CommandSeek(consumer_id=1, request_id=5),
        pb.CommandGetLastMessageId(consumer_id=1, request_id=5),
        pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Individual, request_id=5),
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_consumer_that_is_not_open_is_told_so(wire: Wire, command: Any) -> None:
    answer = wire.ask(command)
    assert (answer.request_id, answer.error) == (5, pb.ServerError.ConsumerNotFound)
    assert answer.message


def test_commands_that_want_no_answer_get_none_and_the_connection_stays(wire: Wire) -> None:
    ack = pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Individual)
    redeliver = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=1)
    wire.send(pb.CommandFlow(consumer_id=1, message_permits=10), ack, redeliver, pb.CommandPing())
    assert isinstance(wire.receive(), pb.CommandPong)


def test_lookup_leads_here(broker: exacta.Broker, wire: Wire) -> None:
    found = wire.ask(pb.CommandLookupTopic(topic="persistent://acme/shop/x", request_id=3))
    assert found.request_id == 3
    assert found.response == pb.CommandLookupTopicResponse.Connect
    assert found.broker_service_url == broker.pulsar_url
    assert found.authoritative


def test_an_illegal_name_is_refused(wire: Wire) -> None:
    found = wire.ask(pb.CommandLookupTopic(topic="non-persistent://public/default/x", request_id=3))
    assert (found.response, found.error) == (pb.CommandLookupTopicResponse.Failed, pb.ServerError.InvalidTopicName)
    assert found.message


def metadata(wire: Wire, topic: str, *, creates: bool = True) -> pb.CommandPartitionedTopicMetadataResponse:
    return wire.ask(
        pb.CommandPartitionedTopicMetadata(topic=topic, request_id=1, metadata_auto_creation_enabled=creates)
    )


def test_partitions_are_told_as_the_log_has_them() -> None:
    with exacta.Broker(pulsar=True, num_partitions=3) as broker:
        wire = Wire(broker.pulsar_url)
        refused = metadata(wire, "orders", creates=False)
        assert refused.response == pb.CommandPartitionedTopicMetadataResponse.Failed
        assert refused.error == pb.ServerError.TopicNotFound
        assert metadata(wire, "orders").partitions == 3
        assert metadata(wire, "orders", creates=False).partitions == 3
        assert metadata(wire, "orders-partition-1").partitions == 0
        assert metadata(wire, "persistent://pulsar/system/transaction_coordinator_assign").partitions == 1
        wire.close()


def test_a_topic_of_one_partition_is_not_partitioned(wire: Wire) -> None:
    found = metadata(wire, "orders")
    assert found.response == pb.CommandPartitionedTopicMetadataResponse.Success
    assert found.partitions == 0
    assert found.HasField("partitions")


def test_no_topic_is_created_where_the_operator_does_not_want_that() -> None:
    with exacta.Broker(pulsar=True, auto_create_topics_enable=False) as broker:
        wire = Wire(broker.pulsar_url)
        assert metadata(wire, "orders").error == pb.ServerError.TopicNotFound
        refused = wire.open_producer("orders")
        assert (type(refused), refused.error) == (pb.CommandError, pb.ServerError.TopicNotFound)
        assert "orders" in refused.message
        wire.close()
