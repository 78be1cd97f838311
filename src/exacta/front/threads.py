"""Work that would keep the event loop waiting runs on a thread and is answered on the loop."""

import asyncio
from asyncio import Future
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def on_thread(call: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
    """Call on a thread, and call back on the running loop with what came of it; an exception is handed over."""

    def answered(future: "Future[T]") -> None:
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            done(future.result())
        elif isinstance(error, Exception):
            done(error)

    asyncio.get_running_loop().run_in_executor(None, call).add_done_callback(answered)
