"""Programs that write: transactions over several partitions, and an idempotent producer without transactions."""

from typing import Any

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k22_init_producer_id
from simulation.clients.batches import batch
from simulation.clients.connection import Disconnected
from simulation.clients.surroundings import Surroundings
from simulation.clients.transactional import QUOTAS, RETRIABLE, Abort, Fenced, Producer, produce_request
from simulation.history import Outcome, Place, Writing, keyed, value_of

FORGETFUL = frozenset({"short"})
"""Topics that are deleted and created again."""
FULL = frozenset({ErrorCode.POLICY_VIOLATION, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER})
"""The answers to a batch that a full topic does not take, and to those behind it; they are sent again until it does."""
SEQUENCES = 1 << 31
KEYED = "keyed"
"""The topic whose records have keys, of which there are few."""
KEYS = (b"a", b"b", b"c", b"d", b"a key that is longer than its digest", b"another key longer than its digest")
TOMBSTONES = 0.25


def values_for(here: Surroundings, writing: Writing, place: Place, first: int, count: int) -> list[bytes]:
    values = [value_of(writing.name, first + k) for k in range(count)]
    if place[0] != KEYED:
        return values
    chance = here.chance
    return [keyed(value, chance.choice(KEYS), is_tombstone=chance.random() < TOMBSTONES) for value in values]


def _most_records(here: Surroundings) -> int:
    """Return the most records of a batch: where the disk fills, some batches find room, and longer ones do not."""
    return 20 if here.history.disk_fills else 3


async def transfers(here: Surroundings) -> bool:
    """Write transactions until the world is over; return whether another instance should go on: this one was fenced."""
    producer = Producer(here, forgetful=FORGETFUL)
    number = 0
    try:
        await producer.initialise()
        while not here.is_over():
            await here.think(1.0)
            number += 1
            await _transfer(here, producer, here.history.begin(f"{here.writer}.{number}", Outcome.NO_COMMIT))
    except Fenced:
        return not here.is_superseded()
    return False


async def _transfer(here: Surroundings, producer: Producer, writing: Writing) -> None:
    chance = here.chance
    try:
        written = 0
        for _ in range(chance.choice([0, 1, 1, 1, 2, 2, 3])):
            batches: list[tuple[Place, list[bytes]]] = []
            for place in chance.sample(here.places, chance.randint(1, min(3, len(here.places)))):
                for _ in range(chance.choice([1, 1, 1, 2])):
                    count = chance.randint(1, _most_records(here))
                    batches.append((place, values_for(here, writing, place, written, count)))
                    written += count
            await producer.send(writing, batches)
            if chance.random() < 0.3:
                await here.think(0.3)
        if chance.random() < 0.04:
            await here.think(here.timeout_ms / 1000)  # it may be too late then
        if written and chance.random() < 0.7:
            await producer.commit(writing)
        else:
            await producer.abort()
    except Abort:
        await producer.abort(bump=True)


async def idempotent(here: Surroundings) -> bool:
    """Write batches without transactions, several in flight, each until it is acknowledged."""
    answer = await here.connection.until_answered(k22_init_producer_id.InitProducerIdRequest(), 4)
    pair = (answer.producer_id, answer.producer_epoch)
    here.history.given_out("producer", answer.producer_id)
    # A producer that is not known may begin anywhere: near the end, so that sequences wrap.
    first = SEQUENCES - here.chance.randint(1, 12) if here.chance.random() < 0.5 else 0
    sequences = dict.fromkeys(here.places, first)
    writing = here.history.begin(f"{here.writer}.0", Outcome.PLAIN)
    while not here.is_over():
        await here.think(1.5)
        waiting: list[tuple[Place, list[bytes], Any]] = []
        for _ in range(here.chance.randint(1, 4)):
            place = here.chance.choice(here.places)
            known = len(writing.values)
            values = values_for(here, writing, place, known, here.chance.randint(1, _most_records(here)))
            writing.values.update(dict.fromkeys(values, place))
            data = batch(values, pair, sequences[place], transactional=False, now_ms=here.now_ms())
            sequences[place] = (sequences[place] + len(values)) % SEQUENCES
            waiting.append((place, values, produce_request(place, data, None)))
        while waiting:
            answers = await here.connection.ask_all([(request, 11) for _, _, request in waiting])
            told = zip(waiting, answers, strict=True)
            waiting = [each for each, answer in told if not _acknowledged(here, writing, each[0], each[1], answer)]
            if waiting:
                await here.connection.back_off()
    return False


def _acknowledged(here: Surroundings, writing: Writing, place: Place, values: list[bytes], answer: Any) -> bool:
    if isinstance(answer, Disconnected):
        return False
    told = answer.responses[0].partition_responses[0]
    if told.error_code in RETRIABLE:
        return False
    if told.error_code in FULL and (place[0] in QUOTAS or here.history.disk_fills):
        return False
    if told.error_code != ErrorCode.NONE:
        code = ErrorCode(told.error_code).name
        here.history.refusals.append(f"refused: {writing.name} to {place}, idempotent: {code}")
        return True
    for number, value in enumerate(values):
        if told.base_offset >= 0:  # a repeat of what has been deleted since may have no offset
            writing.acknowledged[value] = told.base_offset + number
    return True
