"""The contract of `ClientConnection`, shown on a front whose answers go by id: the beginning, idleness, the end."""

from exacta.front.client_connection import SENT_AT_ONCE
from exacta.front.memory import WRITE_HIGH_WATER_BYTES
from exacta.ports.authorizer import ANONYMOUS
from tests.front.plain_front import BAD, ECHO, IDLE_MS, QUIET, WORK, Start


class TestTheBeginning:
    def test_a_connection_that_is_not_let_in_is_closed_before_it_is_read(self, start: Start) -> None:
        front = start()
        front.lets_in = False
        client = front.connect()
        client.send(ECHO)
        front.settle()
        assert client.closed
        assert client.connection.begun == []

    def test_nobody_has_logged_in(self, start: Start) -> None:
        assert start().connect().connection.principal is ANONYMOUS


class TestPushes:
    def test_a_push_answers_nothing_and_counts_until_the_peer_has_it(self, start: Start) -> None:
        front = start()
        client = front.connect(reads=False)
        client.send()
        front.settle()
        client.connection.tell(77, bytes(2 * WRITE_HIGH_WATER_BYTES))
        front.settle()
        client.connection.tell(78, b"another")
        front.settle()
        assert front.answers.used_bytes == 8 + 2 * WRITE_HIGH_WATER_BYTES + 8 + len(b"another")
        client.read()
        front.settle()
        client.read()
        assert client.answered() == [77, 78]
        assert front.answers.used_bytes == 0
        assert client.connection.close_if_idle() is False  # the frame is still owed its answer
        client.connection.answer(1, b"")
        front.settle()
        client.read()
        assert client.answered() == [1]

    def test_a_push_to_one_who_is_gone_is_dropped(self, start: Start) -> None:
        front = start()
        client = front.connect()
        client.vanish()
        front.settle()
        client.connection.tell(1, b"x")
        front.settle()
        assert (client.answers(), front.answers.used_bytes) == ([], 0)


class TestIdle:
    def test_a_connection_on_which_nothing_happens_is_closed(self, start: Start) -> None:
        front = start()
        client = front.connect()
        front.pass_time(IDLE_MS - 1)
        client.send(ECHO)
        front.settle()
        front.pass_time(IDLE_MS - 1)
        assert not client.closed
        front.pass_time(2)
        assert client.closed

    def test_one_that_is_owed_an_answer_is_not(self, start: Start) -> None:
        front = start()
        client = front.connect()
        client.send()
        client.send()
        front.settle()
        client.connection.answer(2, b"")
        front.pass_time(5 * IDLE_MS)
        assert not client.closed
        client.connection.answer(1, b"")
        front.settle()
        front.pass_time(IDLE_MS)
        assert client.closed

    def test_frames_that_want_no_answer_are_owed_none(self, start: Start) -> None:
        front = start()
        client = front.connect()
        front.pass_time(IDLE_MS - 1)
        client.send(QUIET)
        front.settle()
        front.pass_time(IDLE_MS - 1)
        assert not client.closed  # something has come
        front.pass_time(2)
        assert client.closed

    def test_what_is_pushed_is_something_that_happens(self, start: Start) -> None:
        front = start()
        client = front.connect()
        for _ in range(3):
            front.pass_time(IDLE_MS - 1)
            client.connection.tell(1, b"alive?")
            front.settle()
        assert not client.closed

    def test_who_takes_nothing_for_so_long_is_idle(self, start: Start) -> None:
        front = start()
        stalls, slow = front.connect(reads=False), front.connect(reads=False)
        for client in (stalls, slow):
            client.ask_to_read(400_000)
        for _ in range(5):
            front.pass_time(IDLE_MS // 2)
            slow.read(1_000)
        assert (stalls.closed, slow.closed) == (True, False)

    def test_who_was_refused_and_takes_no_answer_does_not_stay(self, start: Start) -> None:
        front = start()
        stays, slow = front.connect(reads=False), front.connect(reads=False)
        for client in (stays, slow):
            client.ask_to_read(10_000)
            client.send(BAD)
        for _ in range(5):
            front.pass_time(IDLE_MS // 2)
            slow.read(1_000)
        assert (stays.closed, slow.closed) == (True, False)
        slow.read()
        front.settle()
        assert slow.closed

    def test_never(self, start: Start) -> None:
        front = start(connections_max_idle_ms=-1)
        client = front.connect()
        front.pass_time(1_000 * IDLE_MS)
        assert not client.closed


class TestTheEnd:
    def test_work_for_one_who_is_gone_counts_until_it_is_done(self, start: Start) -> None:
        front = start()
        client = front.connect()
        client.send(WORK, bytes(10_000))
        client.ask_to_read(1_000)
        front.settle()
        client.vanish()
        front.settle()
        assert front.requests.used_bytes == 10_009
        client.connection.answer(1, b"nobody hears this")
        assert front.requests.used_bytes == 0
        assert client.answers() == [(2, bytes(1_000))]

    def test_an_answer_that_waits_for_room_is_forgotten_with_its_client(self, start: Start) -> None:
        front = start()
        for _ in range(3):
            front.connect(reads=False).ask_to_read(900_000)
        client = front.connect()
        client.ask_to_read(900_000)
        front.settle()
        assert list(front.answers.line)
        client.vanish()
        front.settle()
        assert client.connection not in front.answers.line

    def test_what_is_ready_is_sent_before_a_close(self, start: Start) -> None:
        front = start()
        client = front.connect()
        client.send()
        front.settle()
        client.connection.answer(1, b"the last")
        client.connection.close()
        front.settle()
        assert client.answers() == [(1, b"the last")]
        assert client.closed

    def test_a_front_that_stops_answers_what_it_has_read(self, start: Start) -> None:
        front = start()
        client = front.connect()
        client.send()
        front.settle()
        client.connection.stop_taking_requests()
        client.send()
        client.connection.answer(1, b"")
        front.settle()
        assert client.answered() == [1]
        assert client.connection.begun == [1]
        assert client.connection.close_if_idle()
        front.settle()
        assert client.closed


class TestLongAnswers:
    def test_they_are_handed_over_in_parts_each_in_a_turn_of_its_own(self, start: Start) -> None:
        front = start(queued_max_response_bytes=1 << 30)
        client = front.connect()
        client.connection.tell(7, bytes(3 * SENT_AT_ONCE))
        sizes = []
        while front.loop.ready:
            before = len(client.received)
            front.turn()
            sizes.append(len(client.received) - before)
        assert [size for size in sizes if size] == [SENT_AT_ONCE] * 3 + [8]
        assert client.answered() == [7]
        assert front.answers.used_bytes == 0

    def test_the_rest_waits_until_the_peer_has_taken_a_part(self, start: Start) -> None:
        front = start(queued_max_response_bytes=1 << 30)
        client = front.connect(reads=False)
        client.connection.tell(7, bytes(3 * SENT_AT_ONCE))
        front.settle()
        assert len(client.untaken) == SENT_AT_ONCE
        for _ in range(4):
            client.read()
            front.settle()
        assert client.answered() == [7]
        assert front.answers.used_bytes == 0

    def test_a_connection_that_is_to_end_sends_the_rest_first(self, start: Start) -> None:
        front = start(queued_max_response_bytes=1 << 30)
        client = front.connect(reads=False)
        client.connection.tell(7, bytes(3 * SENT_AT_ONCE))
        client.connection.close()
        front.settle()
        for _ in range(4):
            assert not client.closed
            client.read()
            front.settle()
        assert client.answered() == [7]
        assert client.closed
        assert front.answers.used_bytes == 0
