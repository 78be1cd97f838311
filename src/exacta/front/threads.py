"""Work that would keep the event loop waiting runs on a thread and is answered on the loop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def on_thread(call: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
    """Call on a thread, and call back on the running loop with what came of it; an exception is handed over.

    The process does not wait for the thread when it ends: a compression may take a minute.
    """
    loop = asyncio.get_running_loop()

    def work() -> None:
        found: T | Exception
        try:
            found = call()
        except Exception as error:  # noqa: BLE001  # it is handed over
            found = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits for it
            loop.call_soon_threadsafe(done, found)

    Thread(target=work, name="exacta-work", daemon=True).start()
