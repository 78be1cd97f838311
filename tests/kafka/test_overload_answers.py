"""Overload by answers that clients do not take: they cost the broker bounded memory, and others nothing."""

from typing import Any

import pytest

from exacta.front.memory import (
    LEAST_ANSWER_BYTES,
    WRITE_HIGH_WATER_BYTES,
)
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest
from tests.kafka.overloading import MB, STALL_MS, Start, fetch, fill, is_served, produce
from tests.kafka.wire import values_in


def records(answer: Any) -> Any:
    return answer.responses[0].partitions[0].records


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
        received: list[int] = []
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
