"""A loop that was held up, as by a slow sync (decision 0023), takes what has arrived before it looks at its timers.

So a heartbeat that came in time counts, however late it is read, unless its connection has more to do than a turn
allows.
"""

import asyncio
import socket
import time
from collections.abc import Callable

import pytest

from exacta.server.event_loop import new_event_loop

TIMER_SECONDS = 0.01


class Reads(asyncio.Protocol):
    """Notes that something has come."""

    def __init__(self, order: list[str]) -> None:
        self._order = order

    def data_received(self, data: bytes) -> None:
        self._order.append(data.decode())


@pytest.mark.parametrize("new_loop", [new_event_loop, asyncio.new_event_loop])
def test_what_has_arrived_comes_before_the_timers(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    order: list[str] = []
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_hold_up(order))
    assert order == ["held up", "heartbeat", "expired"]


async def _hold_up(order: list[str]) -> None:
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    transport, _ = await loop.create_connection(lambda: Reads(order), sock=ours)
    expired = loop.create_future()

    def expire() -> None:
        order.append("expired")
        expired.set_result(None)

    def hold_up() -> None:
        order.append("held up")
        loop.call_later(TIMER_SECONDS, expire)
        theirs.send(b"heartbeat")
        time.sleep(TIMER_SECONDS * 2)  # the timer is due now

    loop.call_soon(hold_up)
    await expired
    transport.close()
    theirs.close()
