"""Any mixture of clients on a front whose answers go by id: the good ones are served, and memory is bounded."""

import random
import struct

import pytest

from exacta.front.memory import (
    ALLOWANCE_BYTES,
    LEAST_ANSWER_BYTES,
    READ_BYTES,
    SCARCE_READ_BYTES,
    WRITE_HIGH_WATER_BYTES,
)
from tests.front.plain_front import ECHO, LONG, QUIET, READ, STALL_MS, WORK, PlainClient, Start

MB = 1 << 20


@pytest.mark.parametrize("seed", range(20))
def test_any_mixture_ends_with_all_answered(start: Start, seed: int) -> None:
    """A client that goes on reading and sending is served, whatever others do; and the bounds hold all the while."""
    chance = random.Random(seed)
    front = start(queued_max_request_bytes=400_000, max_in_flight_requests_per_connection=chance.choice([1, 5, 500]))
    good = [front.connect(reads=False) for _ in range(10)]
    bad = [front.connect(reads=False) for _ in range(5)]
    outboxes: dict[PlainClient, bytearray] = {client: bytearray() for client in good}
    expected: dict[PlainClient, set[int]] = {client: set() for client in good}
    longest = 0
    for client in good:
        for number in range(1, chance.randint(2, 20)):
            kind = chance.choice([ECHO, WORK, LONG, QUIET, READ])
            size = chance.choice([10, 10_000, 200_000, 300_000])
            frame = client.frame(kind, struct.pack(">i", size) if kind == READ else bytes(size))
            longest = max(longest, len(frame))
            outboxes[client] += frame
            if kind != QUIET:
                expected[client].add(number)
    for client in bad:
        if chance.random() < 0.5:
            client.send_bytes(struct.pack(">i", 90 * MB) + bytes(150_000))
        else:
            for _ in range(20):
                client.ask_to_read(MB)
    received: dict[PlainClient, set[int]] = {client: set() for client in good}
    steps = 0
    while received != expected:
        steps += 1
        assert steps < 20_000, "somebody is not served"
        for client in good:
            size = chance.choice([0, 100, 70_000, 300_000])
            client.send_bytes(bytes(outboxes[client][:size]))
            del outboxes[client][:size]
            client.read(chance.choice([0, 100_000, 1 << 30]))
            for number, _ in client.answers():
                assert number not in received[client]
                received[client].add(number)
            worked_on = [each for each in client.connection.worked_on if each not in client.connection.to_read()]
            if worked_on and chance.random() < 0.5:
                client.connection.answer(chance.choice(worked_on), bytes(chance.choice([0, 50_000])))
            assert not client.closed
        front.turn()
        if chance.random() < 0.1:
            front.pass_time(STALL_MS // 10)
    everybody = len(front.clients)
    assert front.most_requests <= 400_000 + READ_BYTES + longest + everybody * (ALLOWANCE_BYTES + SCARCE_READ_BYTES)
    assert front.most_answers <= MB + LEAST_ANSWER_BYTES + everybody * (2 * WRITE_HIGH_WATER_BYTES)
