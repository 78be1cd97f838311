"""Time that jumps, and a loop that says when nothing will happen any more."""

import asyncio

import pytest

from simulation.loop import NothingHappens, SimulatedLoop
from simulation.process import Process, ProcessKilled


def test_an_hour_passes_at_once_and_in_order() -> None:
    loop = SimulatedLoop()
    seen: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append((name, loop.time()))

    async def all_of_them() -> None:
        await asyncio.gather(sleeper("late", 3600), sleeper("soon", 1), sleeper("never first", 1.5))

    loop.run_until_complete(all_of_them())
    assert seen == [("soon", 1.0), ("never first", 1.5), ("late", 3600.0)]
    loop.close()


def test_waiting_for_what_never_comes_is_an_error() -> None:
    loop = SimulatedLoop()
    waiting = loop.create_future()
    with pytest.raises(NothingHappens):
        loop.run_until_complete(waiting)
    loop.close()


def test_nothing_of_a_killed_process_is_run() -> None:
    loop = SimulatedLoop()
    seen: list[str] = []
    process = Process(loop, seen.append)
    process.call_soon(seen.append, "before")
    process.call_later(1.0, seen.append, "after")
    loop.call_later(0.5, process.kill)
    loop.run_until_complete(asyncio.sleep(2))
    assert seen == ["before"]
    loop.close()


def test_a_process_that_dies_within_a_job_says_nothing_from_a_finally() -> None:
    loop = SimulatedLoop()
    defects: list[str] = []
    process = Process(loop, defects.append)
    heard: list[str] = []

    def job() -> None:
        try:
            process.die()
        finally:
            process.call_soon(heard.append, "done")

    worker = process.worker(lambda: 0.1)("disk", 1)
    worker.submit(job)
    loop.run_until_complete(asyncio.sleep(1))
    assert (heard, defects, process.alive) == ([], [], False)
    with pytest.raises(ProcessKilled):
        process.die()
    loop.close()


def test_nothing_of_a_paused_process_happens_until_it_is_resumed() -> None:
    loop = SimulatedLoop()
    seen: list[tuple[str, float]] = []
    process = Process(loop, lambda defect: pytest.fail(defect))

    def see(what: str) -> None:
        seen.append((what, loop.time()))

    process.call_later(1.0, see, "timer")
    loop.call_later(0.5, process.pause)
    loop.call_later(2.0, lambda: process.run(see, "from outside"))
    loop.call_later(5.0, process.resume)
    loop.run_until_complete(asyncio.sleep(4))
    assert seen == []
    loop.run_until_complete(asyncio.sleep(2))
    assert seen == [("timer", 5.0), ("from outside", 5.0)]
    loop.close()


def test_call_that_is_due_in_a_pause_can_still_be_cancelled() -> None:
    loop = SimulatedLoop()
    seen: list[str] = []
    process = Process(loop, lambda defect: pytest.fail(defect))
    timeout = process.call_later(2.0, seen.append, "too late")
    process.call_later(1.0, timeout.cancel)
    process.pause()
    loop.call_later(3.0, process.resume)
    loop.run_until_complete(asyncio.sleep(4))
    assert seen == []
    loop.close()


def test_process_that_is_killed_in_a_pause_does_not_wake() -> None:
    loop = SimulatedLoop()
    seen: list[str] = []
    process = Process(loop, lambda defect: pytest.fail(defect))
    process.call_later(1.0, seen.append, "timer")
    process.pause()
    loop.call_later(2.0, process.kill)
    loop.call_later(3.0, process.resume)
    loop.run_until_complete(asyncio.sleep(4))
    assert seen == []
    loop.close()
