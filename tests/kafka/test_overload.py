"""Overload: what clients do that costs a broker memory or time, and what it costs them and others."""

import logging
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from exacta.front.connection import MAX_FRAMES_PER_TURN
from exacta.front.memory import (
    ALLOWANCE_BYTES,
    LEAST_ANSWER_BYTES,
    READ_BYTES,
    SCARCE_READ_BYTES,
    WRITE_HIGH_WATER_BYTES,
)
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from exacta.protocol.kafka.messages.k12_heartbeat import HeartbeatRequest
from tests.kafka.by_hand import Broker, Client
from tests.kafka.wire import batch, values_in

STALL_MS = 1_000
MB = 1 << 20
HEARTBEAT = HeartbeatRequest(group_id="g", member_id="m", generation_id=1)

Start = Callable[..., Broker]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start brokers with small budgets; at the end all clients vanish, and nothing may be left of them."""
    started: list[Broker] = []

    def starting(**options: Any) -> Broker:
        given = {"connections_max_stall_ms": STALL_MS, "queued_max_request_bytes": MB, "queued_max_response_bytes": MB}
        broker = Broker(**(given | options))
        broker.ask(broker.connect(), MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        started.append(broker)
        return broker

    yield starting
    for broker in started:
        broker.end()


def produce(*values: bytes, partition: int = 0) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch(*values))
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[data])])


def fetch(offset: int = 0, max_wait_ms: int = 0, partitions: int = 1) -> FetchRequest:
    wanted = [FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 30)] * partitions
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 30, topics=[FetchTopic(topic="t", partitions=wanted)]
    )


def records(answer: Any) -> Any:
    return answer.responses[0].partitions[0].records


def fill(broker: Broker, batches: int, size: int) -> None:
    writer = broker.connect()
    for _ in range(batches):
        answer = broker.ask(writer, produce(b"x" * size), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def is_served(broker: Broker) -> bool:
    """Say whether somebody else gets small things done."""
    client = broker.connect()
    broker.ask(client, HEARTBEAT, 2)
    broker.ask(client, produce(b"small"), 9)
    return True


class TestRequests:
    def test_a_size_that_is_announced_costs_nothing(self, start: Start) -> None:
        broker = start()
        for _ in range(100):
            broker.connect().send_bytes(struct.pack(">i", 100 * MB))
        broker.settle()
        assert broker.requests.used_bytes == 400
        assert is_served(broker)

    def test_half_requests_stop_being_read_and_small_ones_pass(self, start: Start) -> None:
        broker = start()
        many = [broker.connect() for _ in range(30)]
        for client in many:
            client.send_bytes(struct.pack(">i", 90 * MB) + bytes(MB))
        broker.settle()
        assert broker.requests.is_full()
        # One of them is let on, as far as its bytes go.
        bound = MB + READ_BYTES + MB + len(many) * (ALLOWANCE_BYTES + SCARCE_READ_BYTES)
        assert broker.most_requests <= bound
        assert sum(len(client.unsent) for client in many) >= len(many) * MB - bound
        assert is_served(broker)

    def test_requests_that_fill_everything_half_read_all_come_through(self, start: Start) -> None:
        broker = start()
        many = [broker.connect() for _ in range(20)]
        frames = [client.frame(produce(b"%d " % number + b"x" * 600_000), 9) for number, client in enumerate(many)]
        for begin in range(0, len(frames[0]), 100_000):  # none is whole before all are too much
            for client, frame in zip(many, frames, strict=True):
                client.send_bytes(frame[begin : begin + 100_000])
            broker.turn()
        broker.settle()
        assert broker.most_requests <= MB + READ_BYTES + len(frames[0]) + len(many) * (
            ALLOWANCE_BYTES + SCARCE_READ_BYTES
        )
        offsets = [client.answers()[0][1].responses[0].partition_responses[0].base_offset for client in many]
        assert sorted(offsets) == list(range(len(many)))
        assert broker.requests.used_bytes == 0

    def test_who_is_let_on_reads_its_request_and_no_more_and_keeps_its_turn_till_then(self, start: Start) -> None:
        broker = start()
        let_on, fills, waits = (broker.connect() for _ in range(3))
        fills.send_bytes(struct.pack(">i", 90 * MB) + bytes(MB))
        let_on.send(fetch(max_wait_ms=50), 11)
        frame = let_on.frame(produce(b"x" * 900_000), 9)
        let_on.send_bytes(frame[:300_000])
        broker.settle()
        fills.send_bytes(bytes(MB))
        broker.settle()
        fills.vanish()
        rest = broker.connect()
        rest.send_bytes(struct.pack(">i", 90 * MB) + bytes(MB))
        broker.settle()
        first = broker.requests.let_on
        assert first is not None
        broker.pass_time(100)  # an answer to the fetch, which is none to what is being read
        assert broker.requests.let_on is first
        waits.send_bytes(struct.pack(">i", 90 * MB) + bytes(MB))
        let_on.send_bytes(frame[300_000:] + let_on.frame(produce(b"x" * 900_000), 9))
        broker.settle()
        assert broker.most_requests <= 2 * MB + READ_BYTES + 4 * (ALLOWANCE_BYTES + SCARCE_READ_BYTES) + len(frame)

    def test_who_stalls_is_given_up_when_others_wait_and_not_before(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        broker = start()
        stalled = [broker.connect() for _ in range(8)]
        for client in stalled:
            client.send_bytes(struct.pack(">i", 90 * MB) + bytes(MB // 8 - 1_000))
        broker.settle()
        broker.pass_time(10 * STALL_MS)
        assert not broker.requests.is_full()
        assert not any(client.closed for client in stalled)
        large = [broker.connect() for _ in range(3)]
        sent = [client.send(produce(b"x" * 900_000), 9) for client in large]
        stalled[0].send_bytes(bytes(MB))
        broker.settle()
        with caplog.at_level(logging.WARNING):
            broker.pass_time(2 * STALL_MS)
        broker.settle()
        assert [[number for number, _ in client.answers()] for client in large] == [[number] for number in sent]
        assert all(client.closed for client in stalled[1:])
        assert not any(client.closed for client in large)
        assert "does not send the rest of its request" in caplog.text
        assert "queued.max.request.bytes=1048576" in caplog.text

    def test_who_is_slow_and_goes_on_is_not_given_up(self, start: Start) -> None:
        broker = start()
        slow, other = broker.connect(), broker.connect()
        frame = slow.frame(produce(b"x" * 900_000), 9)
        other.send_bytes(struct.pack(">i", 90 * MB) + bytes(2 * MB))
        broker.settle()
        assert broker.requests.is_full()
        broker.pass_time(1)
        for begin in range(0, len(frame), 70_000):
            slow.send_bytes(frame[begin : begin + 70_000])
            other.send_bytes(bytes(70_000))
            broker.pass_time(STALL_MS)
        assert not slow.closed
        assert not other.closed

    def test_a_few_bytes_now_and_then_are_no_progress(self, start: Start) -> None:
        broker = start()
        trickles, waits = broker.connect(), broker.connect()
        trickles.send_bytes(struct.pack(">i", 90 * MB) + bytes(MB))
        broker.settle()
        sent = waits.send(produce(b"x" * 900_000), 9)
        broker.settle()
        for _ in range(20):
            trickles.send_bytes(b"x")
            broker.pass_time(STALL_MS // 10)
        broker.settle()
        assert trickles.closed
        assert [number for number, _ in waits.answers()] == [sent]

    def test_a_request_byte_by_byte_costs_what_its_bytes_are(self, start: Start) -> None:
        broker = start()
        client = broker.connect()
        for byte in client.frame(produce(b"x" * 1_000), 9)[:-1]:
            client.send_bytes(bytes((byte,)))
            broker.settle()
        assert isinstance(client.connection._begun, bytearray)
        assert broker.requests.used_bytes == len(client.connection._begun)


class TestAnswers:
    def test_readers_that_do_not_read_are_few_and_others_are_served(self, start: Start) -> None:
        broker = start(queued_max_response_bytes=8 * MB)
        fill(broker, 20, 500_000)
        greedy = [broker.connect(reads=False) for _ in range(30)]
        for client in greedy:
            for _ in range(50):
                client.send(fetch(), 11)
        broker.settle()
        assert broker.most_answers <= 8 * MB + LEAST_ANSWER_BYTES
        assert broker.most_untaken <= 8 * MB + LEAST_ANSWER_BYTES + len(greedy) * 2 * WRITE_HIGH_WATER_BYTES
        assert is_served(broker)
        reader = broker.connect()
        reader.send(fetch(), 11)
        broker.settle()
        assert reader.answers() == []
        broker.pass_time(len(greedy) * STALL_MS)  # behind those who asked before, and are given up a few at a time
        [(_, answer)] = reader.answers()
        assert len(values_in(records(answer))) >= 1
        assert any(client.closed for client in greedy)

    def test_who_asks_for_little_does_not_wait_for_readers_that_do_not_read(self, start: Start) -> None:
        broker = start()
        fill(broker, 8, 500_000)
        for _ in range(8):
            broker.connect(reads=False).send(fetch(), 11)
        broker.settle()
        assert broker.answers.is_full()
        reader = broker.connect()
        broker.ask(reader, produce(b"new"), 9)
        assert values_in(records(broker.ask(reader, fetch(offset=8), 11))) == [b"new"]

    def test_a_slow_reader_gets_everything_in_order(self, start: Start) -> None:
        broker = start()
        fill(broker, 6, 300_000)
        slow, waits = broker.connect(reads=False), broker.connect()
        sent = [slow.send(fetch(), 11) for _ in range(4)]
        others = [waits.send(fetch(), 11) for _ in range(3)]
        received = []
        while len(received) < len(sent):
            broker.pass_time(STALL_MS // 2)
            slow.read(100_000)
            received += [number for number, answer in slow.answers() if values_in(records(answer))]
        assert received == sent
        broker.settle()
        assert [number for number, _ in waits.answers()] == others

    def test_nobody_waits_nobody_is_given_up(self, start: Start) -> None:
        broker = start(queued_max_response_bytes=100 * MB, connections_max_idle_ms=100 * STALL_MS)
        fill(broker, 3, 500_000)
        client = broker.connect(reads=False)
        sent = client.send(fetch(), 11)
        broker.pass_time(50 * STALL_MS)
        client.read()
        assert [number for number, _ in client.answers()] == [sent]

    def test_who_takes_nothing_for_so_long_is_idle(self, start: Start) -> None:
        broker = start(queued_max_response_bytes=100 * MB, connections_max_idle_ms=100 * STALL_MS)
        fill(broker, 3, 500_000)
        stalls, slow = broker.connect(reads=False), broker.connect(reads=False)
        for client in (stalls, slow):
            client.send(fetch(), 11)
        for _ in range(5):
            broker.pass_time(50 * STALL_MS)
            slow.read(1_000)
        assert (stalls.closed, slow.closed) == (True, False)

    @pytest.mark.parametrize("most", [1, 100_000])
    def test_one_batch_is_answered_however_little_room_there_is(self, start: Start, most: int) -> None:
        broker = start(queued_max_response_bytes=most, message_max_bytes=10 * MB, queued_max_request_bytes=100 * MB)
        fill(broker, 2, 5_000_000)
        answer = broker.ask(broker.connect(), fetch(), 11)
        assert values_in(records(answer)) == [b"x" * 5_000_000]

    def test_long_polls_that_all_end_at_once(self, start: Start) -> None:
        broker = start()
        many = [broker.connect(reads=False) for _ in range(4)]
        sent = [[client.send(fetch(max_wait_ms=60_000), 11) for _ in range(100)] for client in many]
        broker.settle()
        fill(broker, 1, 500_000)
        assert broker.most_answers <= MB + LEAST_ANSWER_BYTES
        assert broker.most_untaken <= MB + LEAST_ANSWER_BYTES + len(many) * 2 * WRITE_HIGH_WATER_BYTES
        received: list[list[int]] = [[] for _ in many]
        while received != sent:
            for numbers, client in zip(received, many, strict=True):
                client.read()
                numbers += [number for number, answer in client.answers() if len(values_in(records(answer))) == 1]
            assert broker.loop.ready or received == sent, "nothing goes on any more"
            broker.settle()

    def test_what_may_be_long_waits_for_room_and_for_its_turn(self, start: Start) -> None:
        broker = start()
        fill(broker, 4, 500_000)
        metadata = MetadataRequest(topics=None)
        parked = broker.connect()
        first, second = parked.send(fetch(offset=4, max_wait_ms=60_000), 11), parked.send(metadata, 9)
        broker.settle()
        assert len(parked.connection._unanswered) == 1
        fill(broker, 1, 10)
        assert [number for number, _ in parked.answers()] == [first, second]
        greedy = [broker.connect(reads=False) for _ in range(4)]
        for client in greedy:
            client.send(fetch(), 11)
        broker.settle()
        assert broker.answers.is_full()
        waits = broker.connect()
        sent = waits.send(metadata, 9)
        broker.settle()
        assert waits.answers() == []
        for client in greedy:
            client.vanish()
        broker.settle()
        assert [number for number, _ in waits.answers()] == [sent]


class TestFairness:
    def test_a_flood_takes_its_turns_like_others(self, start: Start) -> None:
        broker = start()
        flood, other = broker.connect(), broker.connect()
        frames = [flood.frame(HEARTBEAT, 2) for _ in range(1_000)]
        flood.send_bytes(b"".join(frames))
        other.send(HEARTBEAT, 2)
        broker.settle(until=lambda: len(other.received) > 0)
        assert len(flood.answers()) <= 2 * MAX_FRAMES_PER_TURN
        most, before = 0, len(flood.received)
        while broker.loop.ready:
            broker.turn()
            most, before = max(most, len(flood.received) - before), len(flood.received)
        answers = flood.answers()
        assert [number for number, _ in answers][-1] == len(frames)
        assert most <= MAX_FRAMES_PER_TURN * 18

    def test_requests_that_want_no_answer_take_turns_too(self, start: Start) -> None:
        broker = start()
        flood = broker.connect()
        request = produce(b"v")
        request.acks = 0
        for _ in range(200):
            flood.send_bytes(flood.frame(request, 9))
        broker.turn()
        assert broker.engine._state.partition("t", 0).next_offset <= MAX_FRAMES_PER_TURN
        broker.settle()
        assert broker.engine._state.partition("t", 0).next_offset == 200

    def test_what_follows_a_long_request_comes_in_one_piece_and_what_follows_a_short_one_in_small_ones(
        self, start: Start
    ) -> None:
        broker = start(queued_max_request_bytes=4 * MB)
        client = broker.connect()
        pieces = []
        for size in (600_000, 600_000, 100, 600_000):
            client.send(produce(bytes(size)), 9)
            broker.settle()
            pieces.append(len(client.pieces))
            client.pieces.clear()
        assert pieces == [2, 1, 1, 2]

    def test_who_never_reads_is_read_no_more(self, start: Start) -> None:
        broker = start()
        client = broker.connect(reads=False)
        for _ in range(20_000):
            client.send_bytes(client.frame(HEARTBEAT, 2))
        broker.settle()
        assert client.unsent
        assert len(client.untaken) <= 2 * WRITE_HIGH_WATER_BYTES
        client.reads = True
        client.read()
        broker.settle()
        assert [number for number, _ in client.answers()] == list(range(1, 20_001))


class TestVanished:
    def test_a_long_poll_is_forgotten_with_its_client(self, start: Start) -> None:
        broker = start()
        for _ in range(20):
            client = broker.connect()
            client.send(fetch(max_wait_ms=60_000, partitions=1_000), 11)
            broker.settle()
            assert len(broker.engine._fetcher._by_key) == 1
            client.vanish()
            broker.settle()
            assert not broker.engine._fetcher._by_key
            assert not broker.engine._fetcher._waiting
        assert broker.requests.used_bytes == 0

    def test_a_join_of_one_who_is_gone_ends_by_itself(self, start: Start) -> None:
        broker = start(group_initial_rebalance_delay_ms=3_000)
        client = broker.connect()
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"m" * 1_000)
        client.send(
            JoinGroupRequest(
                group_id="g",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[protocol],
            ),
            2,
        )
        broker.settle()
        assert broker.requests.used_bytes > 1_000
        client.vanish()
        broker.settle()
        broker.pass_time(60_000)
        assert broker.requests.used_bytes == 0

    def test_writes_of_one_who_is_gone_count_until_they_are_done(self, start: Start) -> None:
        broker = start()
        client = broker.connect()
        client.send(produce(b"x" * 10_000), 9)
        broker.turn()
        connection = client.connection
        assert len(connection._unanswered) == 1
        connection.abort()
        broker.turn()
        broker.settle()
        assert broker.requests.used_bytes == 0
        assert broker.engine._state.partition("t", 0).next_offset == 1

    def test_half_a_request_is_forgotten(self, start: Start) -> None:
        broker = start()
        client = broker.connect()
        client.send_bytes(struct.pack(">i", MB) + bytes(MB // 2))
        broker.settle()
        client.vanish()
        broker.settle()
        assert broker.requests.used_bytes == 0


@pytest.mark.parametrize("seed", range(30))
def test_any_mixture_ends_with_all_answered_in_order(start: Start, seed: int) -> None:
    """Whoever goes on reading and sending is served, whatever others do; and the bounds hold all the while."""
    chance = random.Random(seed)
    broker = start(queued_max_request_bytes=400_000, max_in_flight_requests_per_connection=chance.choice([1, 5, 500]))
    fill(broker, 5, 100_000)
    good = [broker.connect(reads=False) for _ in range(12)]
    bad = [broker.connect(reads=False) for _ in range(6)]
    outboxes = {client: bytearray() for client in good}
    sent: dict[Client, list[int]] = {client: [] for client in good}
    longest = 0

    def request() -> tuple[Any, int]:
        return chance.choice(
            [
                (HEARTBEAT, 2),
                (MetadataRequest(topics=None), 9),
                (produce(b"v" * chance.choice([10, 10_000, 200_000, 300_000])), 9),
                (fetch(), 11),
                (fetch(offset=10**6), 11),
                (fetch(max_wait_ms=100), 11),
            ]
        )

    for client in good:
        for _ in range(chance.randint(1, 20)):
            frame = client.frame(*request())
            longest = max(longest, len(frame))
            outboxes[client] += frame
            sent[client].append(client._count)
    for client in bad:
        client.send_bytes(chance.choice([struct.pack(">i", 90 * MB) + bytes(150_000), client.frame(fetch(), 11) * 20]))
    received: dict[Client, list[int]] = {client: [] for client in good}
    steps = 0
    while received != sent:
        steps += 1
        assert steps < 20_000, "somebody is not served"
        for client in good:
            size = chance.choice([0, 100, 70_000, 300_000])
            client.send_bytes(bytes(outboxes[client][:size]))
            del outboxes[client][:size]
            client.read(chance.choice([0, 100_000, 1 << 30]))
            received[client] += [number for number, _ in client.answers()]
            assert not client.closed
        broker.turn()
        if chance.random() < 0.1:
            broker.pass_time(STALL_MS // 10)
    everybody = len(broker.clients)
    assert broker.most_requests <= 400_000 + READ_BYTES + longest + everybody * (ALLOWANCE_BYTES + SCARCE_READ_BYTES)
    assert broker.most_answers <= MB + LEAST_ANSWER_BYTES + everybody * WRITE_HIGH_WATER_BYTES
