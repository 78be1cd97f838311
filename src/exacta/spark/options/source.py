"""The options of a reader of a stream and of a batch.

If Spark's own connector lets one option win over another, it wins here too (a time over times over offsets).
"""

import re
from collections.abc import Mapping
from typing import Any

from exacta.spark.options.connection import CONNECTION, ConnectionOptions, judge_connection
from exacta.spark.options.kafka_clients import COMMON_REFUSED, CONSUMER_REFUSED
from exacta.spark.options.offsets import (
    EARLIEST,
    LATEST,
    Bound,
    by_name_or_offset,
    by_time,
    by_times,
    duration_ms,
    pattern,
)
from exacta.spark.options.parsing import (
    Option,
    OptionError,
    Parsed,
    check_partitions_named,
    flag,
    json_object,
    one_of,
    parse,
    path_instead_of,
    positive,
    positive_long,
    refused,
    text,
    topics,
    whole,
)


class SourceOptions(ConnectionOptions, frozen=True, kw_only=True):
    """The options of a reader."""

    topics: tuple[str, ...] = ()
    topic_pattern: re.Pattern[str] | None = None
    assigned: Mapping[str, tuple[int, ...]] | None = None
    starting: Bound = LATEST
    ending: Bound = LATEST
    unmatched_time_is_latest: bool = False
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    driver_rows: int = 0
    fail_on_data_loss: bool = True
    check_topic_ids: bool = True
    include_headers: bool = False
    committed_only: bool = True
    fetch_bytes: int = 4 * 1024 * 1024
    commit_group: str | None = None


def _committed_only(name: str, value: str) -> bool:
    return one_of("read_committed", "read_uncommitted")(name, value) == "read_committed"


def _assign(name: str, value: str) -> dict[str, tuple[int, ...]]:
    found = json_object(name, value)
    for topic, partitions in found.items():
        if not isinstance(partitions, list) or not all(type(p) is int and p >= 0 for p in partitions):
            raise OptionError(f"option '{name}' must list whole numbers for topic '{topic}', not {partitions}")
    check_partitions_named(name, found)
    return {topic: tuple(sorted(set(partitions))) for topic, partitions in found.items()}


def _latest_where_none(name: str, value: str) -> bool:
    return one_of("error", "latest")(name, value) == "latest"


SOURCE = (
    *CONNECTION,
    Option(
        name="subscribe",
        field="topics",
        parse=topics,
        default="",
        about="the topics to read, as `a,b`. One of `subscribe`, `subscribePattern` and `assign` is needed",
    ),
    Option(
        name="subscribePattern",
        field="topic_pattern",
        parse=pattern,
        default="",
        about=(
            "a regular expression; all topics whose whole name matches it are read, and so are topics that come into "
            "being while the query runs. The expression is Python's (`re`), not Java's: the two differ in rare "
            "constructs only. It never finds internal topics"
        ),
    ),
    Option(
        name="assign",
        field="assigned",
        parse=_assign,
        default="",
        about='the partitions to read, as `{"a": [0, 1]}`',
    ),
    Option(
        name="startingOffsets",
        field="starting_offsets",
        parse=by_name_or_offset,
        default=f"`{LATEST}`; of a batch `{EARLIEST}`",
        about=(
            '`earliest`, `latest` (streams only), or `{"a": {"0": 42}}` for every partition (-2 is the earliest '
            "offset, -1 the latest). A stream uses it for a new query only. Partitions that come later are read from "
            "their beginning"
        ),
    ),
    Option(
        name="startingOffsetsByTimestamp",
        field="starting_times",
        parse=by_times,
        default="",
        about=(
            '`{"a": {"0": 1700000000000}}` for every partition: reading begins at the first record that is not '
            "older. It wins over `startingOffsets`"
        ),
    ),
    Option(
        name="startingTimestamp",
        field="starting_time",
        parse=by_time,
        default="",
        about="one time for every partition, in ms since 1970. It wins over the two options above",
    ),
    Option(
        name="startingOffsetsByTimestampStrategy",
        field="unmatched_time_is_latest",
        parse=_latest_where_none,
        default="`error`",
        about=(
            "the action for a partition that has no record as late as that: `error`, or `latest` to begin at its "
            "latest offset"
        ),
    ),
    Option(
        name="endingOffsets",
        field="ending_offsets",
        parse=by_name_or_offset,
        default=f"`{LATEST}`",
        about='batches only: `latest`, or `{"a": {"0": 42}}` for every partition (exclusive; -1 is the latest offset)',
    ),
    Option(
        name="endingOffsetsByTimestamp",
        field="ending_times",
        parse=by_times,
        default="",
        about=(
            "batches only: reading ends before the first record that is not older, or at the latest offset if there "
            "is none. It wins over `endingOffsets`"
        ),
    ),
    Option(
        name="endingTimestamp",
        field="ending_time",
        parse=by_time,
        default="",
        about="batches only: one time for every partition. It wins over the two options above",
    ),
    Option(
        name="maxOffsetsPerTrigger",
        field="max_offsets_per_trigger",
        parse=positive_long,
        default="none",
        about="in a stream, a micro-batch has about this many offsets, shared out by how many each partition has",
    ),
    Option(
        name="minOffsetsPerTrigger",
        field="min_offsets_per_trigger",
        parse=positive_long,
        default="none",
        about=(
            "in a stream, a micro-batch waits until this many offsets are there, but no longer than "
            "`maxTriggerDelay`. The first micro-batch of a run does not wait, nor does any under "
            "`Trigger.AvailableNow`"
        ),
    ),
    Option(
        name="maxTriggerDelay",
        field="max_trigger_delay_ms",
        parse=duration_ms,
        default="`15m`",
        about="the longest time for which `minOffsetsPerTrigger` holds a micro-batch back",
    ),
    Option(
        name="minPartitions",
        field="min_partitions",
        parse=positive,
        default="none",
        about="about the least number of tasks: large partitions are read by several tasks",
    ),
    Option(
        name="maxRecordsPerPartition",
        field="max_records_per_partition",
        parse=positive_long,
        default="none",
        about="the most offsets of one task: larger partitions are read by several tasks",
    ),
    Option(
        name="driver.rows",
        field="driver_rows",
        parse=whole,
        default="0: never",
        about=(
            "streams only: the driver itself reads a micro-batch of at most this many offsets (and 1 MiB) and hands "
            "its rows to Spark as one partition. No task in Python reads then, which saves time if batches are "
            "small. Set it if a row is cheap to compute, because the rows of such a batch are no longer spread over "
            "several tasks"
        ),
    ),
    Option(
        name="failOnDataLoss",
        field="fail_on_data_loss",
        parse=flag,
        default="`true`",
        about=(
            "`false`: the query goes on with what there is if a topic was deleted or created again, or if the "
            "beginning of a range or of a new partition is gone"
        ),
    ),
    Option(
        name="check.topic.ids",
        field="check_topic_ids",
        parse=flag,
        default="`true`",
        about=(
            "streams only: `false` takes a topic of the same name for the same topic. It is for a query that goes on "
            "after its topics were moved, with their offsets, to another cluster"
        ),
    ),
    Option(
        name="includeHeaders",
        field="include_headers",
        parse=flag,
        default="`false`",
        about="`true` adds the column `headers`",
    ),
    Option(
        name="commit.group.id",
        field="commit_group",
        parse=text,
        default="none",
        about=(
            "streams only: the consumer group to which the offsets of finished micro-batches are committed, so that "
            "lag tools see the query. The source never reads the group, and nobody else may use it"
        ),
    ),
    Option(
        name="kafka.isolation.level",
        field="committed_only",
        parse=_committed_only,
        default="`read_committed`",
        about="`read_committed` or `read_uncommitted`",
    ),
    Option(
        name="kafka.max.partition.fetch.bytes",
        field="fetch_bytes",
        parse=positive,
        default="4194304",
        about="the bytes of one fetch",
    ),
    Option(
        name="checkpointLocation",
        field=None,
        parse=refused("has no effect when reading: it is an option of the writer"),
        default="",
        about="refused, because it is an option of the writer",
    ),
    Option(
        name="path",
        field=None,
        parse=path_instead_of("subscribe"),
        default="",
        about='refused: `load("orders")` names no topic; use `subscribe`',
    ),
)

_BATCH_ONLY = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
_STREAM_ONLY = ("commit.group.id", "check.topic.ids", "driver.rows")

_OF_TRIGGERS = {
    "maxOffsetsPerTrigger": "max_offsets_per_trigger",
    "minOffsetsPerTrigger": "min_offsets_per_trigger",
    "maxTriggerDelay": "max_trigger_delay_ms",
}
"""The options of Spark's own connector that it passes over in a batch, and their fields."""


def source_options(options: Mapping[str, str], *, batch: bool = False) -> SourceOptions:
    """Return the options of a reader of a stream, or of a batch; raises `OptionError`."""
    parsed = _common(options)
    values = parsed.values
    given = {name.lower() for name in options}
    kinds = "streams: a batch" if batch else "batches: a stream"
    for name in _STREAM_ONLY if batch else _BATCH_ONLY:
        if name.lower() in given:
            parsed.problems.append(f"option '{name}' is for {kinds} has no use for it")
    for name, field in _OF_TRIGGERS.items() if batch else ():
        if values.pop(field, None) is not None:
            parsed.without_effect[name] = "a batch has no triggers, and reads everything at once"
    starting = _first_of(values, "starting_time", "starting_times", "starting_offsets")
    values["starting"] = (EARLIEST if batch else LATEST) if starting is None else starting
    ending = _first_of(values, "ending_time", "ending_times", "ending_offsets")
    values["ending"] = LATEST if ending is None else ending
    if batch:
        with parsed.noting():
            _check_batch(values["starting"], values["ending"])
    return SourceOptions(**parsed.finished())


def includes_headers(options: Mapping[str, str]) -> bool:
    """Return whether a reader of either kind has the column `headers`; raises `OptionError` for what neither takes."""
    return bool(_common(options).finished().get("include_headers", False))


def _common(options: Mapping[str, str]) -> Parsed:
    """Return what the options say, with all that is wrong for a stream and for a batch."""
    parsed = parse(options, (*SOURCE, *COMMON_REFUSED, *CONSUMER_REFUSED), "reading")
    judge_connection(parsed, "reading")
    _judge_topics(parsed)
    values = parsed.values
    times = ("starting_time", "starting_times")
    if "unmatched_time_is_latest" in values and all(parsed.lacks(each) for each in times):
        parsed.problems.append(
            "option 'startingOffsetsByTimestampStrategy' needs 'startingTimestamp' or 'startingOffsetsByTimestamp'"
        )
    least, most = values.get("min_offsets_per_trigger"), values.get("max_offsets_per_trigger")
    if parsed.lacks("min_offsets_per_trigger") and "max_trigger_delay_ms" in values:
        parsed.problems.append("option 'maxTriggerDelay' needs 'minOffsetsPerTrigger', which it limits")
    if least is not None and most is not None and least > most:
        parsed.problems.append(f"option 'minOffsetsPerTrigger' ({least}) is above 'maxOffsetsPerTrigger' ({most})")
    return parsed


def _judge_topics(parsed: Parsed) -> None:
    fields = ("topics", "topic_pattern", "assigned")
    if sum(not parsed.lacks(field) for field in fields) != 1:
        parsed.problems.append(
            "reading needs exactly one of the options 'subscribe' (topics), 'subscribePattern' and 'assign' "
            "(partitions)"
        )
    if parsed.values.get("assigned") is not None:
        parsed.values["topics"] = tuple(parsed.values["assigned"])


def _first_of(values: dict[str, Any], *fields: str) -> Any:
    found = [values.pop(field, None) for field in fields]
    return next((value for value in found if value is not None), None)


def _check_batch(starting: Bound, ending: Bound) -> None:
    """Refuse what would make a batch empty or endless, as Spark's connector does."""
    if starting == LATEST or (isinstance(starting, Mapping) and _holds(starting, -1)):
        raise OptionError("option 'startingOffsets' of a batch cannot be latest (-1): there would be nothing to read")
    if ending == EARLIEST or (isinstance(ending, Mapping) and _holds(ending, -2)):
        raise OptionError("option 'endingOffsets' cannot be earliest (-2): there would be nothing to read")
    if isinstance(starting, Mapping) and isinstance(ending, Mapping):
        for topic, offsets in ending.items():
            for partition, end in offsets.items():
                start = starting.get(topic, {}).get(partition, -2)
                if 0 <= end < start:
                    raise OptionError(
                        f"option 'startingOffsets' begins at offset {start} of {topic}-{partition}, behind {end}, "
                        "where 'endingOffsets' ends"
                    )


def _holds(offsets: Mapping[str, Mapping[int, int]], offset: int) -> bool:
    return any(offset in found.values() for found in offsets.values())
