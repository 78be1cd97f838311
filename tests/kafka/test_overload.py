"""Overload: what clients do that costs a broker memory or time, and what it costs them and others."""

import logging
import random
import struct
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
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest
from exacta.protocol.kafka.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.kafka.by_hand import Broker, Client
from tests.kafka.overloading import HEARTBEAT, MB, STALL_MS, Start, fetch, fill, is_served, produce


def next_offset(broker: Broker) -> int:
    """Return the end of the one partition."""
    partition = broker.engine._state.partition("t", 0)
    assert partition is not None
    return partition.next_offset


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
        assert next_offset(broker) <= MAX_FRAMES_PER_TURN
        broker.settle()
        assert next_offset(broker) == 200

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
        assert next_offset(broker) == 1

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
