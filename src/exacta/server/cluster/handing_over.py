"""The end of a lead that a broker gives up by itself: another takes it at once, and clients are told who."""

import asyncio
from collections.abc import Callable
from typing import Final

from exacta.ports.following import Leader, LedJournal
from exacta.ports.journal import Failed
from exacta.ports.shared import Head, Ledger

SUCCESSOR_S: Final = 1.0
"""A successor is waited for so long: there may be none."""
_LOOK_S: Final = 0.02


async def hand_over(ledger: Ledger, journal: LedJournal, told: Callable[[Leader], None]) -> None:
    """Resign, and wait for the next leader; `told` hears of it. All that had gathered is durable by now."""
    ledger.resign(journal.epoch)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + SUCCESSOR_S
    while loop.time() < deadline:
        answered: asyncio.Future[Head | Failed] = loop.create_future()
        ledger.read_head(answered.set_result)
        try:
            head = await asyncio.wait_for(asyncio.shield(answered), deadline - loop.time())
        except TimeoutError:
            return
        if isinstance(head, Failed):
            return
        if head.epoch > journal.epoch and head.leader is not None:
            told(Leader(head.leader, head.epoch))
            return
        await asyncio.sleep(_LOOK_S)
