"""The broker's options for topics, segments, retention and the cleaner."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from exacta.config.ranges import INT_MAX, LONG_MAX
from exacta.core.values.limits import Limits


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """The options for topics, segments, retention and the cleaner, each with its default."""

    num_partitions: Annotated[
        int,
        Meta(
            ge=1,
            le=Limits().max_partitions_per_topic,
            description="Partitions of a topic whose creator does not say how many.",
        ),
    ] = 1
    message_max_bytes: Annotated[
        int,
        Meta(ge=1, le=INT_MAX, description="Largest record batch where a topic's max.message.bytes is not set."),
    ] = 1_048_588
    max_partitions: Annotated[
        int, Meta(ge=1, le=INT_MAX, description="Most partitions of all topics; creating more is refused.")
    ] = Limits().max_partitions
    log_segment_bytes: Annotated[
        int,
        Meta(
            ge=1 << 20,
            le=INT_MAX,
            description="Size at which a file of the journal ends and the next begins; over PostgreSQL 64 MiB at most.",
        ),
    ] = 128 << 20
    log_flush_interval_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=60_000,
            description="Longest time for which a stop of the machine can lose what needs no sync of its own: writes "
            "into open transactions, and acknowledgements for which a Pulsar client wants no answer. A killed "
            "broker loses neither.",
        ),
    ] = Limits().flush_interval_ms
    disk_free_alarm_percent: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="The log warns when less of the disk of the data directory is free, since a full one takes no "
            "records; 0: never.",
        ),
    ] = 5
    log_roll_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=LONG_MAX,
            description="How long a record of a compacted topic waits for its file to end, to be compacted then, where "
            "its topic's segment.ms is not set. The files of other topics hold many of them, and log.segment.bytes "
            "alone ends these; what retention removes is removed without waiting for a file to end.",
        ),
    ] = 604_800_000
    log_retention_ms: Annotated[
        int,
        Meta(
            ge=-1,
            le=LONG_MAX,
            description="How long records are kept where a topic's retention.ms is not set; -1: for ever.",
        ),
    ] = 604_800_000
    log_retention_bytes: Annotated[
        int,
        Meta(
            ge=-1,
            le=LONG_MAX,
            description="Bytes of a partition that are kept at least where its topic's retention.bytes is not set; "
            "-1: all.",
        ),
    ] = -1
    log_retention_check_interval_ms: Annotated[
        int, Meta(ge=1, le=LONG_MAX, description="How often records are looked for that are kept no longer.")
    ] = 300_000
    log_cleaner_backoff_ms: Annotated[
        int, Meta(ge=1, le=LONG_MAX, description="How long the cleaner waits before it looks again for space to free.")
    ] = 15_000
