"""The two times: whatever the wall clock is set to, deadlines come when they should, and nothing young is deleted."""

import logging

import pytest

from exacta.adapters.clock import Clock
from exacta.core.commands import CreateTopic
from exacta.core.values.transactions import Phase
from exacta.engine.upkeep import Retention, Schedule
from tests.engine.compacting import last_values
from tests.engine.producer import Producer
from tests.engine.rig import Rig, batch

HOUR_MS = 3_600_000
CHECK_MS = 10_000


class Machine:
    """A wall clock that can be set, and the time that only passes."""

    def __init__(self) -> None:
        self.wall_s = 1_700_000_000.0
        self.elapsed_s = 50.0
        self.clock = Clock(lambda: self.wall_s, lambda: self.elapsed_s)

    def passes(self, seconds: float) -> None:
        self.wall_s += seconds
        self.elapsed_s += seconds


@pytest.mark.parametrize("jump_s", [-3600, 3600, 0])
def test_one_time_never_jumps_and_the_other_is_the_wall_clocks(jump_s: int) -> None:
    machine = Machine()
    clock = machine.clock
    assert clock.now_ms() == clock.wall_ms() == 1_700_000_000_000
    machine.passes(10)
    machine.wall_s += jump_s
    assert clock.now_ms() == 1_700_000_010_000
    assert clock.wall_ms() == 1_700_000_010_000 + 1000 * jump_s
    assert clock.least_ms() == min(clock.now_ms(), clock.wall_ms())


def test_a_jump_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    with caplog.at_level(logging.WARNING):
        machine.clock.least_ms()
        machine.wall_s += 30
        machine.clock.least_ms()
        assert not caplog.records
        for _ in range(3):
            machine.wall_s += 3600 if not caplog.records else 0
            machine.clock.least_ms()
    assert [record.args for record in caplog.records] == [(3630,)]


def test_the_clock_of_this_machine_passes() -> None:
    clock = Clock()
    first = clock.now_ms()
    assert abs(first - clock.wall_ms()) < 1000
    assert clock.now_ms() >= first


def test_a_clock_that_jumps_ahead_deletes_no_young_record() -> None:
    rig_time = [0]
    schedule = Schedule(
        rules=lambda configs: Retention(50_000),
        rewriter=last_values,
        record_clock=lambda: rig_time[0],
        check_interval_ms=CHECK_MS,
    )
    rig = Rig(schedule=schedule)
    rig_time[0] = rig.loop.now_ms
    rig.topic()
    rig.submit(batch(b"x", timestamp_ms=rig.loop.now_ms), payloads=[b"x"])
    rig.loop.pass_time(CHECK_MS * 10)
    seen = rig.engine.visible("t", 0)
    assert seen is not None
    assert seen.log_start_offset == 0
    rig_time[0] += 60_000
    rig.loop.pass_time(CHECK_MS)
    seen = rig.engine.visible("t", 0)
    assert seen is not None
    assert seen.log_start_offset == 1


def test_a_transaction_gets_no_more_time_when_the_clock_is_set_back_between_two_lives() -> None:
    rig = Rig()
    rig.ask(CreateTopic(topic="t", topic_id=b"0" * 16, partition_count=2))
    producer = Producer(rig)
    begun_ms = rig.loop.now_ms
    producer.begin(b"a")
    rig.loop.now_ms -= HOUR_MS
    rig.crash()
    assert rig.engine.now_ms() >= begun_ms
    (held,) = rig.engine._state.transactional_ids.values()
    assert held.phase is Phase.ONGOING
    rig.loop.pass_time(60_000 + 1)
    (held,) = rig.engine._state.transactional_ids.values()
    assert held.phase is Phase.EMPTY, "aborted, and its producer fenced"
