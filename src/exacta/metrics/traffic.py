"""The metrics of what comes and goes: requests by API, and the bytes and records of topics."""

from collections import defaultdict

from exacta.core.queries.topic_lists import topics_and_partitions
from exacta.front.meter import Meter
from exacta.metrics import families
from exacta.metrics.busiest import Amounts, Busiest
from exacta.metrics.families import OTHERS
from exacta.metrics.measured import Distribution, Labels, Measured, distribution, single
from exacta.ports.log import Log

OF_TOPICS = (
    families.TOPIC_BYTES_IN,
    families.TOPIC_RECORDS_IN,
    families.TOPIC_BATCHES_IN,
    families.TOPIC_BYTES_OUT,
)
"""The metrics whose amounts are divided among topics, in the order of the amounts."""


def requests(meter: Meter) -> list[Measured]:
    """Return the metrics of all APIs that were asked."""
    durations: dict[Labels, float | Distribution] = {}
    received: dict[Labels, float] = {}
    sent: dict[Labels, float] = {}
    for front, found in meter.fronts.items():
        for number, api in found.apis.items():
            labels = front, found.name_of(number)
            durations[labels] = distribution(api.seconds)
            received[labels], sent[labels] = api.in_bytes, api.out_bytes
    return [
        Measured(families.REQUESTS, durations),
        Measured(families.REQUEST_BYTES, received),
        Measured(families.RESPONSE_BYTES, sent),
    ]


def topics(engine: Log, busiest: Busiest) -> list[Measured]:
    """Return the metrics of topics: the busiest have series of their own."""
    own, others = busiest.divide(_amounts(engine))
    topic_count, partition_count = engine.advice.look(topics_and_partitions)
    return [
        single(families.TOPICS, topic_count),
        single(families.PARTITIONS, partition_count),
        *(
            Measured(family, {(topic,): amounts[number] for topic, amounts in {**own, OTHERS: others}.items()})
            for number, family in enumerate(OF_TOPICS)
        ),
    ]


def _amounts(engine: Log) -> dict[str, Amounts]:
    """Return the amounts of each topic that was written to, or read, since the start."""
    totals: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(OF_TOPICS))
    for partition_id, appended in engine.counts.appended.items():
        place = engine.advice.place(partition_id)
        assert place is not None
        amounts = totals[place[0]]
        amounts[0] += appended.bytes
        amounts[1] += appended.records
        amounts[2] += appended.batches
    for topic, read_bytes in engine.counts.read_bytes.items():
        if engine.advice.partition_count(topic):  # one that was deleted while it was read is no more
            totals[topic][3] += read_bytes
    return {topic: tuple(amounts) for topic, amounts in totals.items()}
