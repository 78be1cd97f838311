"""Several calls in a row of ports that answer by callback, written as one coroutine.

A coroutine awaits `call(method, *arguments)`, and goes on with what the method's callback gets; `call_in` awaits what
blocks, on a worker. `Steps` drives it, and nothing else: there is no event loop and no task in here. Things happen
in the order of the callbacks. Where a callback never comes, as in a simulated process that was killed, the coroutine
never goes on.
"""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, TypeVarTuple

from exacta.adapters.local.worker import Jobs

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Step(Generic[T]):
    """A call whose answer a coroutine awaits: `start` makes it, with the callback that gets the answer."""

    def __init__(self, start: Callable[[Callable[[T], None]], object]) -> None:
        self.start = start

    def __await__(self) -> "Generator[Step[T], T, T]":
        return (yield self)


def call(method: Callable[[*Ts, Callable[[T], None]], object], *arguments: *Ts) -> Step[T]:
    """Return the call of a method whose last argument is the callback."""
    return Step(lambda done: method(*arguments, done))


class _Raised(NamedTuple):
    error: Exception


async def call_in(worker: Jobs, post: Callable[..., None], work: Callable[[], T]) -> T:
    """Do what blocks on a worker; return what it returns, or raise what it raises.

    `post(callback, *arguments)` is called there, and runs the callback on the event loop.
    """

    def start(done: Callable[[T | _Raised], None]) -> None:
        def job() -> None:
            result: T | _Raised
            try:
                result = work()
            except Exception as error:  # noqa: BLE001  # it is raised where it is awaited
                result = _Raised(error)
            post(done, result)

        worker.submit(job)

    result = await Step(start)
    if isinstance(result, _Raised):
        raise result.error
    return result


SomeSteps: TypeAlias = Coroutine[Step[Any], Any, T]


class Steps(Generic[T]):
    """Drive a coroutine of calls, from now on; `done` gets what it returns, or `failed` what it raises."""

    def __init__(self, steps: SomeSteps[T], done: Callable[[T], None], failed: Callable[[Exception], None]) -> None:
        self._steps = steps
        self._done = done
        self._failed = failed
        self._is_running = False
        self._is_stopped = False
        self._go_on(None)

    def _go_on(self, answer: object) -> None:
        if self._is_stopped:
            return
        self._is_running = True
        try:
            awaited = self._steps.send(answer)
        except StopIteration as end:
            self._end(self._done, end.value)
        except Exception as error:  # noqa: BLE001  # `failed` decides
            self._end(self._failed, error)
        else:
            self._is_running = False
            self._await(awaited)

    def _await(self, awaited: Step[Any]) -> None:
        if self._is_stopped:
            self._steps.close()
        else:
            awaited.start(self._go_on)

    def _end(self, end: Callable[[Any], None], result: object) -> None:
        if not self._is_stopped:
            self._is_stopped = True
            end(result)

    def stop(self) -> None:
        """Let the coroutine go no further: no answer reaches it, and nobody is called back any more."""
        self._is_stopped = True
        if not self._is_running:
            self._steps.close()
