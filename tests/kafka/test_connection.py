"""The connection: order of answers, nonsense, sizes, back-pressure."""

import asyncio
import logging
import struct
from collections.abc import Iterator

import pytest

from exacta.kafka.handlers import HANDLERS
from exacta.protocol.kafka.codec import encode_request
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersionsRequest
from exacta.server.event_loop import new_event_loop
from tests.kafka.wire import Front, Wire, batch, front, values_in


@pytest.fixture(params=[new_event_loop, asyncio.new_event_loop], ids=["server's loop", "asyncio's loop"])
def broker(request: pytest.FixtureRequest) -> Iterator[Front]:
    """A broker in memory, on uvloop and without it."""
    with front(request.param()) as running:
        yield running


def create_topic(wire: Wire, topic: str) -> None:
    response = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 9)
    assert response.topics[0].error_code == ErrorCode.NONE


def produce(topic: str, value: bytes = b"v", acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch(value))
    return ProduceRequest(acks=acks, topic_data=[TopicProduceData(name=topic, partition_data=[data])])


def fetch(topic: str, offset: int, max_wait_ms: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[partition])])


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


class TestOrder:
    def test_answers_come_in_the_order_of_requests_though_later_ones_are_ready_first(
        self, broker: Front, wire: Wire
    ) -> None:
        create_topic(wire, "t")
        waits, later = fetch("t", 0, 60_000), ApiVersionsRequest(client_software_name="x", client_software_version="1")
        first, second = wire.send(waits, 11), wire.send(later, 3)
        other = broker.connect()
        other.ask(produce("t"), 9)
        assert wire.receive(waits, 11)[0] == first
        assert wire.receive(later, 3)[0] == second

    def test_many_requests_in_one_segment_and_one_request_in_many(self, wire: Wire) -> None:
        request = HeartbeatRequest(group_id="g", member_id="m", generation_id=1)
        frames = b"".join(b"".join(encode_request(request, 2, number, "c")) for number in range(1000))
        for start in range(0, len(frames), 997):
            wire.socket.sendall(frames[start : start + 997])
        assert [wire.receive(request, 2)[0] for _ in range(1000)] == list(range(1000))

    def test_a_frame_byte_by_byte(self, wire: Wire) -> None:
        request = HeartbeatRequest(group_id="g", member_id="m", generation_id=1)
        for byte in b"".join(encode_request(request, 2, 7, "c")):
            wire.socket.sendall(bytes((byte,)))
        correlation_id, response = wire.receive(request, 2)
        assert correlation_id == 7
        assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID

    @pytest.mark.parametrize("piece_bytes", [50_000, 130_000, 400_000, 10_000_000])
    def test_long_requests_come_whole_in_whatever_pieces(self, broker: Front, wire: Wire, piece_bytes: int) -> None:
        create_topic(wire, "t")
        values = [bytes((number,)) * size for number, size in enumerate((900_000, 300_000, 10, 900_000, 260_000))]
        frames = b"".join(
            b"".join(encode_request(produce("t", value), 9, number, "c")) for number, value in enumerate(values)
        )
        for start in range(0, len(frames), piece_bytes):
            wire.socket.sendall(frames[start : start + piece_bytes])
        answers = [wire.receive(produce("t"), 9) for _ in values]
        assert [number for number, _ in answers] == list(range(len(values)))
        for offset, value in enumerate(values):
            found = wire.ask(fetch("t", offset, 0), 11).responses[0].partitions[0].records
            assert values_in(found)[0] == value

    def test_acks_0_gets_no_answer_and_does_not_disturb_the_order(self, wire: Wire) -> None:
        create_topic(wire, "t")
        wire.send(produce("t", acks=0), 9)
        response = wire.ask(produce("t"), 9)
        assert response.responses[0].partition_responses[0].base_offset == 1

    def test_acks_0_refused_closes_the_connection(self, wire: Wire) -> None:
        wire.send(produce("no-such-topic", acks=0), 9)
        assert wire.is_closed()


class TestNonsense:
    @pytest.mark.parametrize(
        "sent",
        [
            struct.pack(">i", -1),
            struct.pack(">i", 3) + b"abc",
            struct.pack(">i", 0),
            struct.pack(">ihhih", 10, 3, 9, 1, 500),
            struct.pack(">ihhih", 10, 999, 0, 1, -1),
            struct.pack(">ihhih", 10, 3, 99, 1, -1),
            struct.pack(">ihhih", 10, 3, -1, 1, -1),
            struct.pack(">ihhihi", 14, 3, 4, 1, -1, 0x7FFFFFFF),
        ],
        ids=[
            "negative size",
            "no header",
            "empty",
            "client id beyond the frame",
            "unknown API",
            "unknown version",
            "negative version",
            "array beyond the frame",
        ],
    )
    def test_closes_that_connection_with_one_line_and_no_other(
        self, broker: Front, wire: Wire, sent: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        bystander = broker.connect()
        wire.socket.sendall(sent)
        assert wire.is_closed()
        assert len(refusals(caplog)) == 1
        assert bystander.ask(HeartbeatRequest(group_id="g"), 0).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_request_too_large_is_refused_before_its_body_comes(self, caplog: pytest.LogCaptureFixture) -> None:
        with front(socket_request_max_bytes=2048, message_max_bytes=1024) as broker:
            wire = broker.connect()
            wire.socket.sendall(struct.pack(">i", 2049))
            assert wire.is_closed()
            [line] = refusals(caplog)
            assert "2049 bytes" in line
            assert "socket.request.max.bytes=2048" in line

    @pytest.mark.parametrize(
        ("sent", "said"),
        [
            (b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", "an HTTP request came to the Kafka port"),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "an HTTP request came to the Kafka port"),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01", "a TLS handshake came to the Kafka port, which speaks no TLS"),
        ],
    )
    def test_another_protocol_is_named(
        self, wire: Wire, sent: bytes, said: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        wire.socket.sendall(sent)
        assert wire.is_closed()
        [line] = refusals(caplog)
        assert line.partition(": ")[2].startswith(said)

    def test_answers_before_the_nonsense_are_still_sent(self, wire: Wire) -> None:
        request = HeartbeatRequest(group_id="g", member_id="m", generation_id=1)
        wire.socket.sendall(b"".join(encode_request(request, 2, 1, "c")) + struct.pack(">i", -5))
        assert wire.receive(request, 2)[0] == 1
        assert wire.is_closed()

    def test_a_bug_in_a_handler_is_an_error_code_and_a_traceback(
        self, wire: Wire, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def broken(*_: object) -> None:
            raise ZeroDivisionError("a bug")

        replace_handler(monkeypatch, 12, broken)
        assert wire.ask(HeartbeatRequest(group_id="g"), 2).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert wire.ask(HeartbeatRequest(group_id="g"), 2).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert caplog.records[-1].exc_info is not None

    def test_a_bug_in_a_callback_of_the_engine_stays_in_its_connection(
        self, broker: Front, wire: Wire, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(context_broker: object, request: object, context: object, reply: object) -> None:
            context_broker.read(context, lambda state, now_ms: None, lambda seen: 1 // 0)  # type: ignore[attr-defined]

        replace_handler(monkeypatch, 3, broken)
        wire.send(MetadataRequest(), 9)
        assert wire.is_closed()
        answer = broker.connect().ask(HeartbeatRequest(group_id="g"), 2)
        assert answer == HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)


def replace_handler(monkeypatch: pytest.MonkeyPatch, key: int, handle: object) -> None:
    from msgspec.structs import replace

    monkeypatch.setitem(HANDLERS, key, replace(HANDLERS[key], handle=handle))


class TestBackPressure:
    @pytest.mark.parametrize("most", [1, 3, 10])
    def test_reading_stops_while_too_much_is_unanswered_and_goes_on_after(self, most: int) -> None:
        with front(max_in_flight_requests_per_connection=most) as broker:
            wire = broker.connect()
            create_topic(wire, "t")
            waits = fetch("t", 0, 60_000)
            sent = [wire.send(waits, 11) for _ in range(10)]
            other = broker.connect()
            # This connection's answer comes after the broker has seen what it will of the other one.
            other.ask(HeartbeatRequest(group_id="g"), 2)
            assert max(len(each._unanswered) for each in broker.on_loop(lambda: list(broker.connections))) <= most
            other.ask(produce("t"), 9)
            assert [wire.receive(waits, 11)[0] for _ in sent] == sent

    def test_what_came_before_reading_stopped_is_taken_when_there_is_room(self) -> None:
        with front(max_in_flight_requests_per_connection=1) as broker:
            wire = broker.connect()
            create_topic(wire, "t")
            waits, small = fetch("t", 0, 60_000), HeartbeatRequest(group_id="g")
            frames = [
                *encode_request(waits, 11, 1, "c"),
                *encode_request(small, 2, 2, ""),
                *encode_request(small, 2, 3, ""),
            ]
            wire.socket.sendall(b"".join(frames))
            broker.connect().ask(produce("t"), 9)
            assert wire.receive(waits, 11)[0] == 1
            assert [wire.receive(small, 2)[0] for _ in range(2)] == [2, 3]

    def test_a_client_that_does_not_read_is_not_read_either(self, broker: Front, wire: Wire) -> None:
        create_topic(wire, "t")
        value = b"x" * 900_000
        for _ in range(8):
            wire.ask(produce("t", value), 9)
        slow = broker.connect()
        wanted = fetch("t", 0, 0)
        for topic in wanted.topics:
            topic.partitions[0].partition_max_bytes = 50 << 20
        wanted.max_bytes = 50 << 20
        sent = [slow.send(wanted, 11) for _ in range(20)]  # 140 MB of answers
        for correlation_id in sent:
            received, response = slow.receive(wanted, 11)
            assert received == correlation_id
            assert len(response.responses[0].partitions[0].records) > 8 * len(value)


class TestIdle:
    def test_a_connection_on_which_nothing_happens_is_closed(self) -> None:
        with front(connections_max_idle_ms=20) as broker:
            wire = broker.connect()
            wire.ask(HeartbeatRequest(group_id="g"), 2)
            assert wire.is_closed()

    def test_one_that_is_owed_an_answer_is_not(self) -> None:
        with front(connections_max_idle_ms=20) as broker:
            wire = broker.connect()
            create_topic(wire, "t")
            response = wire.ask(fetch("t", 0, 200), 11)
            assert response.responses[0].partitions[0].error_code == ErrorCode.NONE
            assert wire.is_closed()

    def test_never(self, broker: Front) -> None:
        with front(connections_max_idle_ms=-1) as broker:
            broker.connect().ask(HeartbeatRequest(group_id="g"), 2)
            [connection] = broker.on_loop(lambda: list(broker.connections))
            assert connection._idle_timer is None
