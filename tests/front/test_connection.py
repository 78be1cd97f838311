"""The contract of `FramedConnection`, shown on a front whose answers go by id (`plain_front.py`)."""

import logging
import struct

import pytest

from exacta.front.connection import MAX_FRAMES_PER_TURN, MAX_OUTGOING_BYTES, FramedConnection
from exacta.front.memory import (
    ALLOWANCE_BYTES,
    LEAST_ANSWER_BYTES,
    READ_BYTES,
    SCARCE_READ_BYTES,
    WRITE_HIGH_WATER_BYTES,
)
from tests.docstring_tables import docstring_table
from tests.front.plain_front import (
    BAD,
    ECHO,
    LARGEST_FRAME,
    LONG,
    QUIET,
    STALL_MS,
    WORK,
    PlainFront,
    Start,
)

MB = 1 << 20
HALF_A_FRAME = struct.pack(">i", 90 * MB) + bytes(MB)


def is_served(front: PlainFront) -> bool:
    """Say whether somebody else gets small things done, one after another."""
    client = front.connect()
    for body in (b"small", b"and another"):
        sent = client.send(ECHO, body)
        front.settle()
        if client.answers() != [(sent, body)]:
            return False
    return True


MODULE = "exacta.front.connection"


def test_the_tables_of_hooks_and_services_are_those_of_the_class() -> None:
    hooks = {name.strip("`") for name in docstring_table(MODULE, "hook").rows}
    services = {name.strip("`") for name in docstring_table(MODULE, "service").rows}
    assert hooks == FramedConnection.__abstractmethods__ | {"has_room", "described"}, "a front must override the former"
    assert all(callable(getattr(FramedConnection, name)) for name in hooks | services)


class TestFrames:
    def test_answers_leave_in_the_order_in_which_they_are_made(self, start: Start) -> None:
        front = start()
        client = front.connect()
        sent = [client.send() for _ in range(4)]
        front.settle()
        assert client.connection.begun == sent
        for number in (3, 1, 4):
            client.connection.answer(number, b"%d" % number)
            front.settle()
        assert client.answers() == [(3, b"3"), (1, b"1"), (4, b"4")]
        client.connection.answer(2, b"2")
        front.settle()
        assert client.answers() == [(2, b"2")]
        assert (front.requests.used_bytes, front.answers.used_bytes) == (0, 0)

    def test_what_one_turn_made_is_written_in_one_call(self, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
        front = start()
        client = front.connect()
        writes: list[int] = []
        write = client.writelines

        def noted(data: list[bytes]) -> None:
            writes.append(len(data))
            write(data)

        monkeypatch.setattr(client, "writelines", noted)
        client.send_bytes(client.frame(ECHO, b"a") + client.frame(QUIET) + client.frame(ECHO, b"b"))
        front.settle()
        assert client.answered() == [1, 3]
        assert writes == [4]

    def test_a_frame_byte_by_byte_costs_what_its_bytes_are(self, start: Start) -> None:
        front = start()
        client = front.connect()
        frame = client.frame(ECHO, b"x" * 1_000)
        for count, byte in enumerate(frame[:-1], 1):
            client.send_bytes(bytes((byte,)))
            front.settle()
            assert front.requests.used_bytes == count
        client.send_bytes(frame[-1:])
        front.settle()
        assert client.answers() == [(1, b"x" * 1_000)]

    @pytest.mark.parametrize("piece_bytes", [13, 5_000, 400_000])
    def test_frames_come_whole_in_whatever_pieces(self, start: Start, piece_bytes: int) -> None:
        front = start()
        client = front.connect()
        bodies = [bytes((number,)) * size for number, size in enumerate((9_000, 0, 3, 120_000, 1))]
        frames = b"".join(client.frame(ECHO, body) for body in bodies)
        for begin in range(0, len(frames), piece_bytes):
            client.send_bytes(frames[begin : begin + piece_bytes])
            front.settle()
        assert [payload for _, payload in client.answers()] == bodies

    @pytest.mark.parametrize("size", [-1, 0, 4, LARGEST_FRAME + 1])
    def test_a_size_out_of_bounds_ends_the_connection_before_the_body_comes(
        self, start: Start, size: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        front = start()
        client = front.connect()
        client.send_bytes(client.frame(ECHO, b"before") + struct.pack(">i", size))
        front.settle()
        assert client.answers() == [(1, b"before")]
        assert client.closed
        [line] = caplog.records
        assert (line.name, line.levelno) == ("exacta.plain", logging.WARNING)
        assert line.getMessage() == f"closing the connection of 10.0.0.1:1: no frame has {size} bytes"
        assert is_served(front)

    def test_a_front_that_refuses_a_frame_gets_no_further_one(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        front = start()
        client = front.connect()
        client.send_bytes(client.frame(ECHO) + client.frame(BAD) + client.frame(ECHO))
        front.settle()
        assert client.connection.begun == [1, 2]
        assert client.answered() == [1]
        assert client.closed
        assert [line.getMessage() for line in caplog.records] == [
            "closing the connection of 10.0.0.1:1: it makes no sense"
        ]


class TestBackPressure:
    @pytest.mark.parametrize("most", [1, 3])
    def test_so_many_frames_are_owed_and_any_answer_lets_the_next_begin(self, start: Start, most: int) -> None:
        front = start(max_in_flight_requests_per_connection=most)
        client = front.connect()
        for _ in range(6):
            client.send()
        front.settle()
        assert client.connection.begun == list(range(1, most + 1))
        client.connection.answer(most, b"")  # the latest one: nothing waits for its turn
        front.settle()
        assert client.answered() == [most]
        assert client.connection.begun == list(range(1, most + 2))

    def test_so_many_bytes_are_owed(self, start: Start) -> None:
        front = start(queued_max_request_bytes_per_connection=10_000)
        client = front.connect()
        for _ in range(4):
            client.send(WORK, bytes(6_000))
        front.settle()
        assert client.connection.begun == [1, 2]
        client.connection.answer(2, bytes(20_000))
        front.settle()
        assert client.connection.begun == [1, 2, 3]

    def test_who_never_reads_is_read_no_more_and_goes_on_later(self, start: Start) -> None:
        front = start()
        client = front.connect(reads=False)
        sent = [client.send(ECHO, bytes(100)) for _ in range(20_000)]
        front.settle()
        assert client.unsent
        assert len(client.untaken) <= 2 * WRITE_HIGH_WATER_BYTES
        client.reads = True
        client.read()
        front.settle()
        assert client.answered() == sent

    def test_long_answers_of_one_turn_let_the_rest_wait_for_the_next(self, start: Start) -> None:
        front = start(queued_max_request_bytes=100 * MB, queued_max_response_bytes=100 * MB)
        client = front.connect()
        client.connection.data_received(b"".join(client.frame(ECHO, bytes(MB)) for _ in range(10)))
        assert len(client.connection.begun) * MB == MAX_OUTGOING_BYTES
        front.settle()
        assert client.answered() == list(range(1, 11))

    def test_half_frames_stop_being_read_and_small_ones_pass(self, start: Start) -> None:
        front = start()
        many = [front.connect() for _ in range(30)]
        for client in many:
            client.send_bytes(HALF_A_FRAME)
        front.settle()
        assert front.requests.is_full()
        assert front.most_requests <= MB + READ_BYTES + MB + len(many) * (ALLOWANCE_BYTES + SCARCE_READ_BYTES)
        assert is_served(front)

    def test_frames_that_fill_everything_half_read_all_come_through(self, start: Start) -> None:
        front = start()
        many = [front.connect() for _ in range(20)]
        frames = [client.frame(ECHO, b"x" * 600_000) for client in many]
        for begin in range(0, len(frames[0]), 100_000):  # none is whole before all are too much
            for client, frame in zip(many, frames, strict=True):
                client.send_bytes(frame[begin : begin + 100_000])
            front.turn()
        front.settle()
        bound = MB + READ_BYTES + len(frames[0]) + len(many) * (ALLOWANCE_BYTES + SCARCE_READ_BYTES)
        assert front.most_requests <= bound
        assert [client.answered() for client in many] == [[1]] * len(many)

    def test_work_that_is_done_lets_others_be_read_in_whatever_order(self, start: Start) -> None:
        front = start()
        busy, waits = front.connect(), front.connect()
        for _ in range(3):
            busy.send(WORK, bytes(400_000))
        front.settle()
        assert front.requests.is_full()
        waits.send(ECHO, bytes(300_000))
        front.settle()
        begun = list(busy.connection.begun)
        busy.connection.answer(begun[-1], b"")
        front.settle()
        busy.connection.answer(begun[0], b"")
        front.settle()
        assert waits.answered() == [1]

    def test_a_frame_that_may_not_begin_waits_until_nothing_is_owed(self, start: Start) -> None:
        front = start()
        client = front.connect()
        client.send_bytes(client.frame() + client.frame() + client.frame(LONG) + client.frame(ECHO))
        front.settle()
        assert client.connection.begun == [1, 2]
        client.connection.answer(2, b"")
        front.settle()
        assert client.connection.begun == [1, 2]
        client.connection.answer(1, b"")
        front.settle()
        assert client.connection.begun == [1, 2, 3, 4]
        assert client.answered() == [2, 1, 4]

    def test_a_frame_that_may_not_begin_waits_until_the_answers_have_room(self, start: Start) -> None:
        front = start()
        greedy = [front.connect(reads=False) for _ in range(4)]
        for client in greedy:
            client.ask_to_read(900_000)
        front.settle()
        assert front.answers.is_full()
        waits = front.connect()
        waits.send(LONG)
        waits.send(ECHO)
        front.settle()
        assert waits.connection.begun == []
        assert is_served(front)
        for client in greedy:
            client.vanish()
        front.settle()
        assert waits.connection.begun == [1, 2]


class TestAnswers:
    def test_answers_wait_for_room_and_readers_get_all(self, start: Start) -> None:
        front = start()
        slow, waits = front.connect(reads=False), front.connect()
        sent = [slow.ask_to_read(900_000) for _ in range(4)]
        others = [waits.ask_to_read(900_000) for _ in range(3)]
        received: list[int] = []
        while len(received) < len(sent):
            front.pass_time(STALL_MS // 2)
            slow.read(100_000)
            received += slow.answered()
        front.settle()
        assert received == sent
        assert waits.answered() == others
        assert front.most_answers <= MB + LEAST_ANSWER_BYTES + 2 * WRITE_HIGH_WATER_BYTES

    def test_an_answer_of_any_length_gets_as_much_as_there_is(self, start: Start) -> None:
        front = start(queued_max_response_bytes=8 * MB)
        client = front.connect()
        client.ask_to_read(100 * MB)
        front.settle()
        [(_, payload)] = client.answers()
        assert len(payload) == 2 * MB

    def test_who_asks_for_little_does_not_wait_for_readers_that_do_not_read(self, start: Start) -> None:
        front = start()
        for _ in range(4):
            front.connect(reads=False).ask_to_read(900_000)
        front.settle()
        assert front.answers.is_full()
        reader = front.connect()
        reader.ask_to_read(1_000)
        front.settle()
        assert reader.answers() == [(1, bytes(1_000))]


class TestFairness:
    def test_a_flood_takes_its_turns_like_others(self, start: Start) -> None:
        front = start()
        flood, other = front.connect(), front.connect()
        flood.send_bytes(b"".join(flood.frame(ECHO) for _ in range(1_000)))
        other.send(ECHO)
        while not other.received:
            front.turn()
        assert len(flood.connection.begun) <= 2 * MAX_FRAMES_PER_TURN
        most = 0
        while front.loop.ready:
            before = len(flood.connection.begun)
            front.turn()
            most = max(most, len(flood.connection.begun) - before)
        assert most == MAX_FRAMES_PER_TURN
        assert flood.answered() == list(range(1, 1_001))

    @pytest.mark.parametrize("kind", [WORK, QUIET])
    def test_frames_without_an_answer_take_turns_too(self, start: Start, kind: bytes) -> None:
        front = start()
        flood = front.connect()
        for _ in range(200):
            flood.send(kind)
        front.turn()
        assert len(flood.connection.begun) == MAX_FRAMES_PER_TURN
        front.settle()
        assert len(flood.connection.begun) == 200


class TestStall:
    def test_half_a_frame_is_given_up_when_others_wait_and_not_before(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        front = start()
        stalled = [front.connect() for _ in range(8)]
        for client in stalled:
            client.send_bytes(struct.pack(">i", 90 * MB) + bytes(MB // 8 - 1_000))
        front.settle()
        front.pass_time(10 * STALL_MS)
        assert not any(client.closed for client in stalled)
        stalled[0].send_bytes(bytes(MB))  # it is let on, and keeps all others waiting
        large = [front.connect() for _ in range(3)]
        for client in large:
            client.send(ECHO, bytes(900_000))
        front.settle()
        front.pass_time(2 * STALL_MS + 1)
        assert all(client.closed for client in stalled[1:])
        assert [client.answered() for client in large] == [[1]] * len(large)
        assert {line.name for line in caplog.records} == {"exacta.plain", "exacta.front"}
        assert "does not send the rest of its request" in caplog.text
        assert "queued.max.request.bytes=1048576" in caplog.text

    def test_who_is_slow_and_goes_on_is_not_given_up(self, start: Start) -> None:
        front = start()
        slow, waits = front.connect(), front.connect()
        waits.send_bytes(HALF_A_FRAME + bytes(MB))
        frame = slow.frame(ECHO, bytes(900_000))
        front.settle()
        assert front.requests.is_full()
        for begin in range(0, len(frame), 70_000):
            slow.send_bytes(frame[begin : begin + 70_000])
            waits.send_bytes(bytes(70_000))
            front.pass_time(STALL_MS)
        assert not slow.closed
        assert not waits.closed

    def test_who_does_not_take_its_answers_is_given_up_when_others_wait(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        front = start()
        greedy = [front.connect(reads=False) for _ in range(3)]
        for client in greedy:
            client.ask_to_read(900_000)
        front.settle()
        front.pass_time(10 * STALL_MS)
        waits = front.connect()
        sent = waits.ask_to_read(900_000)
        front.settle()
        front.pass_time(10 * STALL_MS)
        assert waits.answered() == [sent]
        assert any(client.closed for client in greedy)
        assert "does not take its answers" in caplog.text
        assert "queued.max.response.bytes=1048576" in caplog.text
