"""A client that sends batches of a body that is not Kafka's: each must be refused, whatever the broker can read."""

from typing import Final

from simulation.clients.batches import batch
from simulation.clients.connection import Disconnected
from simulation.clients.surroundings import Surroundings
from simulation.clients.transactional import produce_request

FORGED_BODY: Final = 0x50
_MAGIC_AT: Final = 16
"""The magic byte lies before what a batch's checksum covers."""


async def forge(here: Surroundings) -> bool:
    """Send such a batch now and then."""
    while not here.is_over():
        await here.think(8.0)
        data = bytearray(batch([b"forged"], (-1, -1), -1, transactional=False, now_ms=here.now_ms()))
        data[_MAGIC_AT] = FORGED_BODY
        try:
            await here.connection.ask(produce_request(here.chance.choice(here.places), bytes(data), None), 11)
        except Disconnected:
            await here.connection.back_off()
    return False
