"""Coroutines of calls: what drives them, and what ends them."""

from collections.abc import Callable

import pytest

from exacta.adapters.local.worker import Worker
from exacta.adapters.shared.steps import Steps, call, call_in
from tests.adapters.turns import Turns


class Port:
    """A port whose callbacks the test calls."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, Callable[[str], None]]] = []

    def ask(self, number: int, done: Callable[[str], None]) -> None:
        self.asked.append((number, done))

    def answer(self, text: str) -> None:
        self.asked.pop(0)[1](text)


async def two(port: Port) -> list[str]:
    return [await call(port.ask, 1), await call(port.ask, 2)]


def test_steps_follow_one_another_and_end_with_a_result():
    port, results = Port(), list[object]()
    Steps(two(port), results.append, results.append)
    assert [number for number, _ in port.asked] == [1]
    port.answer("a")
    assert [number for number, _ in port.asked] == [2]
    assert results == []
    port.answer("b")
    assert results == [["a", "b"]]


def test_an_exception_goes_to_its_handler():
    async def failing() -> None:
        await call(port.ask, 1)
        raise OSError("away")

    port, failures = Port(), list[Exception]()
    Steps(failing(), lambda _: pytest.fail("it failed"), failures.append)
    port.answer("a")
    assert [str(each) for each in failures] == ["away"]


def test_steps_that_are_stopped_go_no_further_and_clean_up():
    ended: list[str] = []

    async def steps() -> None:
        try:
            await call(port.ask, 1)
        finally:
            ended.append("cleaned up")

    port = Port()
    running = Steps(steps(), lambda _: ended.append("done"), lambda _: ended.append("failed"))
    running.stop()
    assert ended == ["cleaned up"]
    port.answer("late")
    assert ended == ["cleaned up"]


def test_steps_may_stop_themselves():
    ended: list[object] = []

    async def steps() -> None:
        await call(port.ask, 1)
        running.stop()
        await call(port.ask, 2)

    port = Port()
    running = Steps(steps(), ended.append, ended.append)
    port.answer("a")
    assert (port.asked, ended) == ([], [])


def test_what_blocks_is_done_on_a_worker():
    def away() -> int:
        raise OSError("away")

    async def steps() -> int:
        with pytest.raises(OSError, match="away"):
            await call_in(worker, turns.call_soon, away)
        return await call_in(worker, turns.call_soon, lambda: 7)

    turns, worker, results = Turns(), Worker("test"), list[object]()
    Steps(steps(), results.append, results.append)
    turns.run_until(lambda: bool(results))
    assert results == [7]
    worker.close()
