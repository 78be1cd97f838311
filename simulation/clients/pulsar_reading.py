"""Reading a partition as a Pulsar reader does, from its beginning to the last message that the broker names."""

import asyncio

from exacta.protocol.pulsar.message_ids import earliest
from simulation.clients.admin import TOPICS
from simulation.clients.connection import Disconnected
from simulation.clients.messages import value_in
from simulation.clients.pulsar_connection import CONSUMER, PulsarLink
from simulation.clients.reading import bounds
from simulation.clients.surroundings import Surroundings
from simulation.history import Place, Poll
from simulation.network import Network

PATIENCE_SECONDS = 5.0
"""So long a reader waits for the next message. What it waits for may have been compacted away meanwhile."""


def pulsar_name(place: Place, partitions: int) -> str:
    """Return the name that Pulsar's clients have for a partition of a topic with this many of them."""
    return place[0] if partitions == 1 else f"{place[0]}-partition-{place[1]}"


async def read_by_pulsar(here: Surroundings, link: PulsarLink, topic: str) -> tuple[dict[int, bytes], bool]:
    """Return the values that there are, by offset, and whether the last message has come. Raises Disconnected."""
    link.drop()
    reader = link.session.subscribe(topic, here.writer, CONSUMER, durable=False, start_message_id=earliest())
    await link.open(reader)
    last = await link.last_message_id()
    link.tell(link.session.flow(CONSUMER))
    found: dict[int, bytes] = {}
    if last.entry_id >= 2**63:  # there is none
        return found, True
    end = last.entry_id + max(last.batch_index, 0)
    until = here.loop.time() + PATIENCE_SECONDS
    while max(found, default=-1) < end and here.loop.time() < until:
        if not link.is_open:
            raise Disconnected
        if not link.pushed:
            await asyncio.sleep(0.1)
            continue
        until = here.loop.time() + PATIENCE_SECONDS
        message = link.pushed.popleft()
        found[message.id.entry_id + message.index] = value_in(message.metadata, message.value)
    return found, max(found, default=-1) >= end


async def poll_by_pulsar(here: Surroundings, link: PulsarLink, place: Place, answer: str) -> tuple[Poll, bool]:
    """Return all that a reader gets of a partition, and whether the last message has come. Raises Disconnected."""
    found, is_whole = await read_by_pulsar(here, link, pulsar_name(place, TOPICS[place[0]]))
    # Asked for afterwards: so nothing beyond the end has let compaction remove anything that the reader has missed.
    first, end = await bounds(here.connection, place)
    next_offset = max(found, default=-1) + 1
    records = sorted(found.items())
    return Poll(f"{here.writer} reader", answer, True, place, 0, next_offset, first, end, end, records), is_whole


async def read_everything_by_pulsar(here: Surroundings, network: Network) -> None:
    """Fill in what a Pulsar reader gets in the end."""
    link = PulsarLink(here.loop, network, here.chance, here.writer)
    for place in here.places:
        is_whole = False
        while not is_whole:
            try:
                poll, is_whole = await poll_by_pulsar(here, link, place, "last")
            except Disconnected:
                await link.back_off()
                continue
            here.history.by_pulsar[place] = poll
    link.drop()
