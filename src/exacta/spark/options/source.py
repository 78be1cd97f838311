"""The options of a reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from exacta.spark.options.connection import CONNECTION, ConnectionOptions, connection_values
from exacta.spark.options.parsing import Option, OptionError, flag, json_object, one_of, parse, positive, topics

EARLIEST = "earliest"
LATEST = "latest"

#: Per topic and partition an offset; -2 is the earliest, -1 the latest.
Offsets = dict[str, dict[int, int]]


@dataclass(frozen=True, kw_only=True)
class SourceOptions(ConnectionOptions):
    """What a reader was asked for."""

    topics: tuple[str, ...]
    assigned: Mapping[str, tuple[int, ...]] | None = None
    starting_offsets: str | Offsets = LATEST
    max_offsets_per_trigger: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool = False
    committed_only: bool = True
    fetch_bytes: int = 4 * 1024 * 1024


def _committed_only(name: str, value: str) -> bool:
    return one_of("read_committed", "read_uncommitted")(name, value) == "read_committed"


def _assign(name: str, value: str) -> dict[str, tuple[int, ...]]:
    found = json_object(name, value)
    for topic, partitions in found.items():
        if not isinstance(partitions, list) or not all(type(p) is int and p >= 0 for p in partitions):
            raise OptionError(f"option '{name}' must list whole numbers for topic '{topic}', not {partitions}")
    return {topic: tuple(sorted(set(partitions))) for topic, partitions in found.items()}


def _starting_offsets(name: str, value: str) -> str | Offsets:
    if value.strip().lower() in (EARLIEST, LATEST):
        return value.strip().lower()
    try:
        found = {
            topic: {int(partition): int(offset) for partition, offset in offsets.items()}
            for topic, offsets in json_object(name, value).items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise OptionError(
            f"option '{name}' must be earliest, latest or JSON like {{\"topic\": {{\"0\": 42}}}}, not '{value}'"
        ) from error
    if any(offset < -2 for offsets in found.values() for offset in offsets.values()):
        raise OptionError(f"option '{name}' holds an offset below -2 (-2 is the earliest, -1 the latest)")
    return found


SOURCE = (
    *CONNECTION,
    Option(
        name="subscribe", field="topics", parse=topics, default="", about="topics `a,b`; this or `assign` is needed"
    ),
    Option(name="assign", field="assigned", parse=_assign, default="", about='partitions `{"a": [0, 1]}`'),
    Option(
        name="startingOffsets",
        field="starting_offsets",
        parse=_starting_offsets,
        default=f"`{LATEST}`",
        about='`earliest`, `latest`, or `{"a": {"0": 42}}` for every partition (-2 earliest, -1 latest); for a new '
        "query only",
    ),
    Option(
        name="maxOffsetsPerTrigger",
        field="max_offsets_per_trigger",
        parse=positive,
        default="none",
        about="about so many offsets in a batch, shared out by what each partition has",
    ),
    Option(
        name="failOnDataLoss",
        field="fail_on_data_loss",
        parse=flag,
        default="`true`",
        about="`false`: go on with what there is where a topic, the beginning of a range or of a new partition has "
        "been deleted",
    ),
    Option(
        name="includeHeaders",
        field="include_headers",
        parse=flag,
        default="`false`",
        about="adds the column `headers`",
    ),
    Option(
        name="kafka.isolation.level",
        field="committed_only",
        parse=_committed_only,
        default="`read_committed`",
        about="or `read_uncommitted`",
    ),
    Option(
        name="kafka.max.partition.fetch.bytes",
        field="fetch_bytes",
        parse=positive,
        default="4194304",
        about="bytes of one fetch",
    ),
)


def source_options(options: Mapping[str, str]) -> SourceOptions:
    """Return the options of a reader; raises `OptionError`."""
    values = connection_values(parse(options, SOURCE, "reading"), "reading")
    assigned = values.get("assigned")
    if (values.get("topics") is None) == (assigned is None):
        raise OptionError("reading needs exactly one of the options 'subscribe' (topics) and 'assign' (partitions)")
    if assigned is not None:
        values["topics"] = tuple(assigned)
    return SourceOptions(**values)
