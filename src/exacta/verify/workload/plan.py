"""Draw from a seed what a transaction shall do, before it begins. The module is pure."""

import random
from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

MOST_RECORDS = 8
MOST_AMOUNT = 100
FLUSH_CHANCE = 0.5
LOOK_CHANCE = 0.3
LATE_CHANCE = 0.5


class PlannedEnd(Enum):
    """The end that a transaction shall have, and how many of a hundred transactions have it."""

    COMMIT = 75
    ABORT = 15
    ZOMBIE = 10
    """A second producer takes the transactional id over meanwhile; then the first one goes on."""


class Plan(Struct, frozen=True, kw_only=True):
    """One transaction.

    `flush`: wait until each record is written, so that those of others may come between; `look`: poll while it is open;
    `late`, of one that is taken over: its last record, and its offsets, are sent after that.
    """

    end: PlannedEnd
    records: list[tuple[str, int, str]]
    flush: bool
    look: bool
    late: bool


def draw_append(chance: random.Random, name: str, topics: Mapping[str, int]) -> Plan:
    """Draw a transaction that writes some records anywhere."""
    places = [(topic, partition) for topic, partitions in topics.items() for partition in range(partitions)]
    count = chance.randint(1, MOST_RECORDS)
    return _plan(chance, [(*chance.choice(places), f"{name}/{number}") for number in range(count)])


def draw_transfer(chance: random.Random, name: str, topics: Mapping[str, int]) -> Plan:
    """Draw a transaction that takes an amount from one partition and gives it to another."""
    ((topic, partitions),) = topics.items()
    giver, taker = chance.sample(range(partitions), 2)
    amount = chance.randint(1, MOST_AMOUNT)
    return _plan(chance, [(topic, giver, f"{name}/0 {-amount}"), (topic, taker, f"{name}/1 {amount}")])


def draw_etl(chance: random.Random, name: str, topics: Mapping[str, int], sources: list[tuple[str, int, int]]) -> Plan:
    """Draw a transaction that writes one record for each of its sources, into the partition of the same number."""
    ((topic, partitions),) = topics.items()
    records = [
        (topic, partition % partitions, f"{name}/{number} {partition}@{offset}")
        for number, (_, partition, offset) in enumerate(sources)
    ]
    return _plan(chance, records)


def _plan(chance: random.Random, records: list[tuple[str, int, str]]) -> Plan:
    (end,) = chance.choices(list(PlannedEnd), [each.value for each in PlannedEnd])
    return Plan(
        end=end,
        records=records,
        # What is aborted must have been written, or nobody could see it.
        flush=end is not PlannedEnd.COMMIT or chance.random() < FLUSH_CHANCE,
        look=chance.random() < LOOK_CHANCE,
        late=end is PlannedEnd.ZOMBIE and chance.random() < LATE_CHANCE,
    )
