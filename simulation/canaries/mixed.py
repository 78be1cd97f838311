"""Planted bugs of topics into which clients of both protocols write."""

from collections.abc import Iterator
from typing import Any

from exacta.core.ids import Body
from exacta.protocol.kafka.record_reading import read_records
from exacta.protocol.pulsar.entries import walked
from exacta.records import keyed_records
from exacta.records.conversion import into_kafka, into_pulsar
from simulation.canaries import Replacements, canary


@canary(
    "compaction takes the key of a Pulsar message for another one than the key of a Kafka record",
    shows=r"tombstone gone: .* are there",
)
def keys_of_two_kinds() -> Replacements:
    read = keyed_records._READERS[Body.PULSAR]

    def with_other_keys(*arguments: Any) -> Any:
        found: Any = read(*arguments)
        if found is not None:
            found.keys = [None if key is None else b"pulsar" + key for key in found.keys]
        return found

    return [(keyed_records._READERS, Body.PULSAR, with_other_keys)]


@canary(
    "compaction takes Pulsar messages for older than Kafka records",
    shows=r"lost write: .* (is the last of .*, and is not there|which nothing had superseded)",
)
def messages_taken_for_older() -> Replacements:
    read = keyed_records._READERS[Body.PULSAR]

    def as_at_the_beginning(*arguments: Any) -> Any:
        found: Any = read(*arguments)
        if found is not None:
            found.offset_deltas = [delta - arguments[1].base_offset for delta in found.offset_deltas]
        return found

    return [(keyed_records._READERS, Body.PULSAR, as_at_the_beginning)]


@canary(
    "Kafka's readers get the messages of a compacted entry at the offsets of those before them that are gone",
    shows=r"inconsistent: (in the end there is|\S+ read) .* of \('keyed'",
)
def messages_close_ranks() -> Replacements:
    def without_holes(*arguments: Any) -> Iterator[Any]:
        return (each for each in walked(*arguments) if not each[0].compacted_out)

    return [(into_kafka, "walked", without_holes)]


@canary(
    "Pulsar's readers get the records of a compacted batch at the offsets of those before them that are gone",
    shows=r"(inconsistent: in the end Pulsar's reader gets|inconsistent: \S+ reader read) .* of \('keyed'",
)
def records_close_ranks() -> Replacements:
    def from_the_first(*arguments: Any) -> list[Any]:
        return [(number, *record[1:]) for number, record in enumerate(read_records(*arguments))]

    return [(into_pulsar, "read_records", from_the_first)]
