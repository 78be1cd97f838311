"""A guest whose writes have a quota: the keeper sets it, and it must hold.

All that is judged is sent over one connection, and so to one life of the broker: a crash fills the bucket again. The
requests name a topic that is not there, and are answered by an error; their bytes count all the
same. Clients come in as users of their own names.
"""

import asyncio
from collections.abc import Hashable

from exacta.front.quotas import BURST_SECONDS
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k48_describe_client_quotas import DescribeClientQuotasRequest
from exacta.protocol.kafka.messages.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from simulation.clients.connection import Disconnected
from simulation.clients.surroundings import Surroundings
from simulation.told import AccessTold

GUEST = "guest0"
ENTITIES: tuple[tuple[tuple[str, str | None], ...], ...] = (
    (("user", GUEST),),
    (("user", GUEST), ("client-id", None)),
)
"""The second one counts before the first."""
RATES = (20_000.0, 50_000.0)
RECORDS_BYTES = 10_000
AHEAD = 8
"""This many requests are sent at once, over one connection. What was sent ahead waits, too."""


async def limit(here: Surroundings, told: AccessTold) -> None:
    """Set or remove a quota of the guest."""
    chance = here.chance
    entity, rate = chance.choice(ENTITIES), chance.choice([*RATES, None])
    changes: dict[Hashable, object] = {entity: rate}
    told.asks(changes)
    entry = EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[OpData(key="producer_byte_rate", value=rate or 0.0, remove=rate is None)],
    )
    answered = await here.connection.ask(AlterClientQuotasRequest(entries=[entry]), 1)
    codes = {each.error_code for each in answered.entries}
    if codes == {ErrorCode.NONE}:
        told.altered(changes)
    else:
        here.history.refusals.append(f"refused: {changes}: {codes}")


async def quotas(here: Surroundings) -> dict[Hashable, object]:
    """Return the quotas that the broker shows."""
    answered = await here.connection.ask(DescribeClientQuotasRequest(), 1)
    return {
        tuple((part.entity_type, part.entity_name) for part in each.entity): value.value
        for each in answered.entries or ()
        for value in each.values
    }


async def flood(here: Surroundings, told: AccessTold) -> None:
    """Let the guest write as fast as it can, and look whether it was held to its quota."""
    found = await quotas(here)
    rate = found.get(ENTITIES[1], found.get(ENTITIES[0]))
    here.other_connection.name = GUEST
    topic = TopicProduceData(
        name="nobodys", partition_data=[PartitionProduceData(index=0, records=bytes(RECORDS_BYTES))]
    )
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
    clock = asyncio.get_running_loop().time
    begun = clock()
    answers = await here.other_connection.ask_all([(request, 7)] * AHEAD)
    if rate is None or any(isinstance(each, Disconnected) for each in answers):
        return
    size, took_s = (AHEAD - 1) * RECORDS_BYTES, clock() - begun
    if took_s < size / float(str(rate)) - BURST_SECONDS:
        here.history.refusals.append(
            f"quotas: the guest wrote {size} bytes in {took_s:.2f} s before the last ones, and has {rate} a second"
        )
