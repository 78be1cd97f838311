"""Long work is done on a thread, one piece after another, and nobody's work is kept."""

import asyncio
import weakref
from collections.abc import Callable
from threading import Event

from exacta.front.conversions import Conversions
from exacta.records.work import SHORT_BYTES

LONG = SHORT_BYTES + 1


class Held:
    """Stands for the bytes that work holds."""

    def work(self) -> str:
        return "done"


def test_short_work_is_done_at_once_and_its_exception_is_handed_over() -> None:
    found: list[object] = []
    error = ValueError("no")

    def failing() -> None:
        raise error

    conversions = Conversions()
    conversions.convert(SHORT_BYTES, lambda: 1, found.append)
    conversions.convert(0, failing, found.append)
    assert found == [1, error]


def test_work_goes_on_after_work_or_an_answer_that_raises() -> None:
    async def scene() -> None:
        loop, conversions, found = asyncio.get_running_loop(), Conversions(), []
        loop.set_exception_handler(lambda _, context: found.append(str(context["exception"])))
        last = loop.create_future()

        def failing(_: object) -> None:
            raise ValueError("a bug in the answer")

        conversions.convert(LONG, lambda: 1 / 0, lambda error: found.append(str(error)))
        conversions.convert(LONG, lambda: 1, failing)
        conversions.convert(LONG, lambda: 2, last.set_result)
        assert await last == 2
        assert found == ["division by zero", "a bug in the answer"]

    asyncio.run(scene())


def test_work_that_nobody_wants_any_more_is_not_kept_while_other_work_is_done() -> None:
    """Clients that ask and go could otherwise let it pile up."""

    async def scene() -> None:
        conversions, may_end = Conversions(), Event()
        loop = asyncio.get_running_loop()
        first, last = loop.create_future(), loop.create_future()
        conversions.convert(LONG, may_end.wait, first.set_result)
        held = Held()
        kept, wanted = weakref.ref(held), True
        answered: list[object] = []
        work: Callable[[], str] | None = held.work
        assert work is not None
        conversions.convert(LONG, work, answered.append, lambda: wanted)
        del held, work
        assert kept() is not None
        wanted = False
        conversions.convert(LONG, lambda: "last", last.set_result)
        assert kept() is None
        may_end.set()
        assert (await first, await last, answered) == (True, "last", [])

    asyncio.run(scene())


def test_owners_take_turns_however_much_one_of_them_has_waiting() -> None:
    begun: list[str] = []
    ends: list[Callable[[], None]] = []

    def on_thread(work: Callable[[], str], done: Callable[[str], None]) -> None:
        begun.append(work())
        ends.append(lambda: done(""))

    conversions = Conversions(on_thread)
    for owner in ("10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3"):
        conversions.on_thread(lambda owner=owner: owner, lambda _: None, owner=owner)  # type: ignore[misc]
    while ends:
        ends.pop(0)()
    assert begun == ["10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.3", "10.0.0.1"]
