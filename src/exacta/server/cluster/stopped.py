"""The ledger of a cluster whose brokers are stopped, for commands that do something with all of its log.

A command takes the lead, as a broker does. So what it does at the ledger is refused where a broker has led meanwhile.
"""

import asyncio
import secrets
from collections.abc import Callable
from typing import Any

from exacta.ports.journal import Failed
from exacta.ports.shared import Claimed, Ledger, Superseded
from exacta.server.errors import ServerError

_NODE_ID = -1
"""The leader of the epoch of a command: no broker has this node id."""


async def require_silence(ledger: Ledger) -> None:
    """Raise ServerError if a broker of the cluster lives; none that has ended can go on from now on."""
    for seen in await ask(ledger.read_brokers):
        mine = seen.broker._replace(instance=f"copy {secrets.token_hex(8)}")
        if isinstance(await ask(ledger.announce, mine), Superseded):
            raise ServerError(f"broker {mine.node_id} runs: stop all brokers of the cluster first")


async def claim(ledger: Ledger) -> int:
    claimed = await ask(ledger.claim, await ask(ledger.read_head), _NODE_ID, f"copy {secrets.token_hex(8)}")
    if not isinstance(claimed, Claimed):
        raise ServerError("a broker of the cluster has begun to lead: stop all brokers first")
    return claimed.epoch


async def settle(call: Callable[..., None], *arguments: Any) -> None:
    """Let the ledger do something in the epoch of this copy."""
    if isinstance(await ask(call, *arguments), Superseded):
        raise ServerError("a broker, or another copy, has begun to lead meanwhile; nothing was moved")


async def ask(call: Callable[..., None], *arguments: Any) -> Any:
    """Return what a call of the ledger hands to its callback. Raises ServerError for a failure."""
    answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    call(*arguments, answered.set_result)
    answer = await answered
    if isinstance(answer, Failed):
        raise ServerError(f"{answer.reason}; the same command again finds out how far this one has come")
    return answer
