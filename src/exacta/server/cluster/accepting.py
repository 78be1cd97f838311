"""The acceptance of a loss: `exacta cluster accept-loss`.

PostgreSQL has lost commits that it had acknowledged, and its head still says that they were durable. Every broker
refuses such a log. From then on it ends where it ends. The next leader begins an epoch there, by which consumers learn
that what they have read behind it is gone (KIP-320).
"""

from typing import NamedTuple

from exacta.config.configuration import Configuration
from exacta.ports.shared import Head, Ledger
from exacta.server.cluster.stopped import ask, claim, require_silence, settle
from exacta.server.errors import ServerError
from exacta.server.shared_stores import open_postgres

_PART_BYTES = 16 << 20


class AcceptedLoss(NamedTuple):
    """The positions between which the log is lost; none is lost where they are equal."""

    end: int
    was_durable_to: int


async def accept_loss_of(configuration: Configuration) -> AcceptedLoss:
    """Let the brokers of a cluster go on from what is there. Raises ServerError."""
    try:
        ledger, objects = await open_postgres(configuration)
    except OSError as error:
        raise ServerError(str(error)) from error
    try:
        return await accept_loss(ledger)
    finally:
        ledger.close()
        objects.close()


async def accept_loss(ledger: Ledger) -> AcceptedLoss:
    """Let the log be durable up to its end. Raises ServerError."""
    await require_silence(ledger)
    epoch = await claim(ledger)
    head: Head = await ask(ledger.read_head)
    end = head.tail_from
    while groups := await ask(ledger.read_tail, end, _PART_BYTES):
        end = groups[-1].end
    if end < head.durable:
        await settle(ledger.accept_loss, epoch, end)
    ledger.resign(epoch)
    return AcceptedLoss(end, max(end, head.durable))
