"""Find where a range begins and ends: the offsets behind `earliest`, `latest`, named offsets and times.

This module owns the checks of what users name, with their sentences. It runs on the driver. Streams use it once, for a
new query.
"""

from collections.abc import Collection, Mapping

from exacta.client.routing import Client
from exacta.client.topics import EARLIEST as AT_EARLIEST
from exacta.client.topics import LATEST as AT_LATEST
from exacta.client.topics import READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from exacta.client.transactions import TopicPartition
from exacta.spark.options import EARLIEST, LATEST, AtTime, OptionError, SourceOptions
from exacta.spark.source.planning import REMEDY, DataLost, Positions

_NONE = -1
"""The answer of ListOffsets if no record is as late as the time that was asked for."""

_MOST_SHOWN = 8
"""A sentence names this many partitions and counts the others."""


def isolation_level(options: SourceOptions) -> int:
    """Return the isolation level that the options ask for: it decides what counts as the latest offset."""
    return READ_COMMITTED if options.committed_only else READ_UNCOMMITTED


def starting_positions(client: Client, options: SourceOptions, partitions: Collection[TopicPartition]) -> Positions:
    """Return where reading begins.

    Raises `OptionError` where the options do not fit the partitions, `DataLost` where what they name is gone.
    """
    wanted = options.starting
    if wanted == EARLIEST:
        return list_offsets(client, partitions, AT_EARLIEST)
    if wanted == LATEST:
        return _latest(client, options, partitions)
    if isinstance(wanted, AtTime):
        found, unmatched = _at_time(client, options, partitions, wanted)
        if unmatched and not options.unmatched_time_is_latest:
            raise OptionError(
                f"option '{wanted.name}': {_named(unmatched)} no record as late as that; set option "
                "'startingOffsetsByTimestampStrategy' to latest to begin there with what comes"
            )
        return found
    assert not isinstance(wanted, str)
    return _named_offsets(client, options, partitions, "startingOffsets", wanted)[0]


def ending_positions(client: Client, options: SourceOptions, partitions: Collection[TopicPartition]) -> Positions:
    """Return where the reading of a batch ends (exclusive); raises as `starting_positions` does."""
    wanted = options.ending
    if isinstance(wanted, AtTime):
        return _at_time(client, options, partitions, wanted)[0]
    if isinstance(wanted, str):
        return _latest(client, options, partitions)
    named, stable = _named_offsets(client, options, partitions, "endingOffsets", wanted)
    # What is there but undecided cannot be read yet.
    return {partition: min(at, stable[partition]) for partition, at in named.items()}


def _latest(client: Client, options: SourceOptions, partitions: Collection[TopicPartition]) -> Positions:
    return list_offsets(client, partitions, AT_LATEST, isolation_level=isolation_level(options))


def _at_time(
    client: Client, options: SourceOptions, partitions: Collection[TopicPartition], wanted: AtTime
) -> tuple[Positions, list[TopicPartition]]:
    """Return the offsets at a time, the latest where there is none, and for which partitions there is none."""
    times = wanted.times_ms
    at = times if isinstance(times, int) else _of_exactly(wanted.name, times, partitions)
    found = list_offsets(client, partitions, at, isolation_level=isolation_level(options))
    unmatched = sorted(partition for partition, offset in found.items() if offset == _NONE)
    return found | _latest(client, options, unmatched), unmatched


def _named_offsets(
    client: Client,
    options: SourceOptions,
    partitions: Collection[TopicPartition],
    name: str,
    wanted: Mapping[str, Mapping[int, int]],
) -> tuple[Positions, Positions]:
    """Return the offsets that are named, and the latest ones that can be read."""
    named = _of_exactly(name, wanted, partitions)
    earliest = list_offsets(client, partitions, AT_EARLIEST)
    latest = _latest(client, options, partitions)
    # Offsets of open transactions are behind the last stable one, and not lost.
    ends = list_offsets(client, partitions, AT_LATEST, isolation_level=READ_UNCOMMITTED)
    found = {}
    for partition, at in sorted(named.items()):
        first, end = earliest[partition], ends[partition]
        if at == AT_EARLIEST:
            at = first
        elif at == AT_LATEST:
            at = latest[partition]
        elif not first <= at <= end:
            if options.fail_on_data_loss:
                raise DataLost(
                    f"option '{name}' names offset {at} of {partition}, which holds "
                    f"offsets {first} to {end}; name one of these, or {REMEDY}"
                )
            at = min(max(at, first), end)
        found[partition] = at
    return found, latest


def _of_exactly(
    name: str, wanted: Mapping[str, Mapping[int, int]], partitions: Collection[TopicPartition]
) -> Positions:
    """Return the wanted offset of each partition; raises `OptionError` unless just those that are read are named."""
    named = {TopicPartition(topic, index): at for topic, found in wanted.items() for index, at in found.items()}
    missing, unread = sorted(set(partitions) - named.keys()), sorted(named.keys() - set(partitions))
    problems = []
    if missing:
        them, are = ("it", "is") if len(missing) == 1 else ("them", "are")
        problems.append(
            f"option '{name}' must name every partition that is read, and {_shown(missing)} {are} missing: add {them}"
        )
    if unread:
        them, are = ("it", "is") if len(unread) == 1 else ("them", "are")
        problems.append(f"option '{name}' names {_shown(unread)}, which {are} not read: leave {them} out")
    if problems:
        raise OptionError(*problems)
    return named


def _named(partitions: Collection[TopicPartition]) -> str:
    return f"{_shown(partitions)} {'has' if len(partitions) == 1 else 'have'}"


def _shown(partitions: Collection[TopicPartition]) -> str:
    """Return the names of partitions as a sentence lists them: the first ones, and how many more there are."""
    names = [f"{topic}-{index}" for topic, index in partitions]
    if len(names) > _MOST_SHOWN:
        names[_MOST_SHOWN:] = [f"{len(names) - _MOST_SHOWN} more partitions"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
