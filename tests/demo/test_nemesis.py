"""Kills strike when they should, are followed by restarts, and leave no zombie behind."""

from typing import Any, cast

import pytest

from exacta.demo.checkpoints import QueryProgress
from exacta.demo.kills import Kill, Target
from exacta.demo.nemesis import Nemesis

IDLE = {"enriched": QueryProgress(last_planned=3, last_done=3), "delays": QueryProgress(last_planned=2, last_done=2)}
IN_FLIGHT = {**IDLE, "delays": QueryProgress(last_planned=3, last_done=2)}
ONE_FURTHER = {**IDLE, "delays": QueryProgress(last_planned=3, last_done=3)}


class FakeZombies:
    workers = ("one", "two")

    def __init__(self):
        self.calls = []

    def alive(self):
        return 2

    def thaw(self):
        self.calls.append("thaw")

    def kill(self):
        self.calls.append("kill")


class FakeWorker:
    def __init__(self, pid, calls):
        self.pid = pid
        self._calls = calls

    def suspend(self):
        self._calls.append(f"freeze {self.pid}")

    def kill(self):
        self._calls.append(f"kill {self.pid}")


class FakeProcess:
    def __init__(self):
        self.calls: list[str] = []
        self.zombies = FakeZombies()
        self.lost = 0
        self.workers = [FakeWorker(pid, self.calls) for pid in (11, 12, 13)]
        self.ended_with = None

    def start(self):
        self.calls.append("start")

    def kill_one(self):
        self.calls.append("kill")
        return "broker"

    def kill_tree(self, *, freeze_workers):
        self.calls.append("freeze" if freeze_workers else "kill tree")
        return self.zombies

    def exit_code(self):
        return self.ended_with

    def task_workers(self):
        return self.workers

    def lost_tasks(self):
        return self.lost


class Scene:
    def __init__(self, *plan):
        self.broker, self.driver, self.now = FakeProcess(), FakeProcess(), 100.0
        self.said: list[str] = []
        self.written = 500
        self.nemesis = Nemesis(
            list(plan),
            cast("Any", self.broker),
            cast("Any", self.driver),
            say=self.said.append,
            written=lambda: self.written,
            clock=lambda: self.now,
        )

    def is_finished(self):
        return self.nemesis.finished

    def strike(self, fraction=0.5):
        """Let what is due strike: it is armed, gets ready, and its delay passes."""
        self.step(fraction=fraction)
        self.step(fraction=fraction)
        self.step(fraction=fraction, after_s=1.0)

    def step(self, queries=IN_FLIGHT, fraction=0.5, after_s=0.0):
        self.now += after_s
        self.nemesis.step(queries, fraction)


def kill(target, **changes):
    defaults = {"at_fraction": 0.4, "delay_s": 1.0, "rest_s": 2.0, "aimed": False, "frozen": False, "draw": 0.9}
    return Kill(target=target, **(defaults | changes))


@pytest.mark.parametrize(
    ("queries", "fraction"), [(IN_FLIGHT, 0.39), (IDLE, 0.5)], ids=["not far enough", "between micro-batches"]
)
def test_nothing_strikes_too_early(queries, fraction):
    scene = Scene(kill(Target.BROKER))
    for _ in range(3):
        scene.step(queries, fraction, after_s=10)
    assert scene.broker.calls == []
    assert not scene.is_finished()


def test_a_broker_is_killed_after_the_delay_and_comes_back_after_its_rest():
    scene = Scene(kill(Target.BROKER))
    scene.step()
    scene.step()
    scene.step(after_s=0.9)
    assert scene.broker.calls == []
    scene.step(IDLE, after_s=0.2)
    assert scene.broker.calls == ["kill"]
    assert scene.nemesis.broker_is_away
    assert not scene.is_finished()
    scene.step(after_s=1.9)
    assert scene.broker.calls == ["kill"]
    scene.step(after_s=0.2)
    assert scene.broker.calls == ["kill", "start"]
    assert scene.is_finished()
    assert scene.nemesis.struck == {Target.DRIVER: 0, Target.BROKER: 1, Target.WORKER: 0}


def test_an_aimed_kill_waits_for_rows_in_the_log():
    scene = Scene(kill(Target.BROKER, aimed=True, delay_s=0.1))
    for _ in range(3):
        scene.step(after_s=1.0)
    assert scene.broker.calls == []
    scene.written += 1
    scene.step(after_s=1.0)
    scene.step(after_s=0.1)
    assert scene.broker.calls == ["kill"]


def test_an_aimed_kill_does_not_wait_for_ever():
    scene = Scene(kill(Target.BROKER, aimed=True, delay_s=0.1))
    scene.written = -1
    scene.step()
    scene.step(after_s=60.0)
    scene.step(after_s=0.1)
    assert scene.broker.calls == ["kill"]


def test_a_driver_that_ended_by_itself_disarms_the_kill():
    scene = Scene(kill(Target.DRIVER))
    scene.step()
    scene.step()
    scene.driver.ended_with = 1
    scene.step(after_s=1.0)
    scene.driver.ended_with = None
    scene.step(after_s=1.0)
    assert scene.driver.calls == []
    scene.step()
    scene.step(after_s=1.0)
    assert scene.driver.calls == ["kill tree", "start"]


def test_a_driver_is_started_again_at_once_and_its_zombies_end_after_their_rest():
    scene = Scene(kill(Target.DRIVER))
    scene.strike()
    assert scene.driver.calls == ["kill tree", "start"]
    scene.step(after_s=1.9)
    assert scene.driver.zombies.calls == []
    scene.step(after_s=0.2)
    assert scene.driver.zombies.calls == ["kill"]


def test_frozen_zombies_are_thawed_once_the_next_driver_has_done_a_batch():
    scene = Scene(kill(Target.DRIVER, frozen=True))
    scene.strike()
    assert scene.driver.calls == ["freeze", "start"]
    scene.step(IN_FLIGHT, after_s=20)
    assert scene.driver.zombies.calls == []
    scene.step(ONE_FURTHER, after_s=1)
    assert scene.driver.zombies.calls == ["thaw"]
    scene.step(ONE_FURTHER, after_s=2)
    assert scene.driver.zombies.calls == ["thaw", "kill"]


def test_a_worker_is_frozen_until_it_must_have_a_task_and_then_killed():
    scene = Scene(kill(Target.WORKER))
    scene.strike()
    scene.step(after_s=1.9)
    assert scene.driver.calls == ["freeze 13"]
    scene.nemesis.give_up()
    scene.step(after_s=0.2)
    assert scene.driver.calls == ["freeze 13", "kill 13"]
    assert not scene.is_finished()


def test_where_there_is_no_worker_the_kill_waits_for_one():
    scene = Scene(kill(Target.WORKER))
    scene.step()
    scene.step()
    workers, scene.driver.workers = scene.driver.workers, []
    scene.step(after_s=5.0)
    assert scene.driver.calls == []
    scene.driver.workers = workers
    scene.step()
    assert scene.driver.calls == ["freeze 13"]


def test_zombies_do_not_outlive_the_demo():
    scene = Scene(kill(Target.DRIVER, frozen=True))
    scene.strike()
    scene.nemesis.end()
    assert scene.driver.zombies.calls == ["kill"]


def test_a_worker_counts_once_a_task_is_lost():
    scene = Scene(kill(Target.WORKER))
    scene.strike()
    scene.step(after_s=2.0)
    scene.step(after_s=0.1)
    assert not scene.is_finished()
    scene.driver.lost = 1
    scene.step(after_s=0.1)
    assert scene.is_finished()
    assert scene.nemesis.struck[Target.WORKER] == 1


def test_an_idle_worker_does_not_count_and_another_one_is_killed():
    scene = Scene(kill(Target.WORKER))
    for _ in range(2):
        scene.strike()
        scene.step(after_s=2.0)
        scene.step(after_s=10.0)
    assert scene.driver.calls == ["freeze 13", "kill 13"] * 2
    assert not scene.is_finished()
    assert scene.nemesis.struck[Target.WORKER] == 0


def test_kills_that_come_too_late_are_told():
    scene = Scene(kill(Target.BROKER))
    scene.nemesis.give_up()
    assert scene.is_finished()
    assert scene.said == ["1 kills did not strike: all flights were read before"]


def test_kills_come_one_at_a_time():
    scene = Scene(kill(Target.BROKER), kill(Target.DRIVER))
    scene.strike(fraction=0.9)
    assert scene.nemesis.broker_is_away
    scene.step(fraction=0.9, after_s=1.9)
    assert scene.driver.calls == []
    scene.step(fraction=0.9, after_s=0.2)
    scene.strike(fraction=0.9)
    assert scene.driver.calls == ["kill tree", "start"]
