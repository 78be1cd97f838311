"""The broker's options for consumer groups and their offsets."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from exacta.config.ranges import INT_MAX, LONG_MAX
from exacta.core.values.limits import Limits


@dataclass(frozen=True, kw_only=True)
class GroupOptions:
    """The options for consumer groups and their offsets, each with its default."""

    max_groups: Annotated[
        int, Meta(ge=1, le=INT_MAX, description="Most groups, and most with offsets; a further one is refused.")
    ] = Limits().max_groups
    group_initial_rebalance_delay_ms: Annotated[
        int, Meta(ge=0, le=INT_MAX, description="How long an empty group waits for more members before it begins.")
    ] = 0
    group_min_session_timeout_ms: Annotated[
        int, Meta(ge=1, le=INT_MAX, description="Shortest session time-out that a group's member may ask for.")
    ] = 6_000
    group_max_session_timeout_ms: Annotated[
        int, Meta(ge=1, le=INT_MAX, description="Longest session time-out that a group's member may ask for.")
    ] = 1_800_000
    group_max_size: Annotated[int, Meta(ge=1, le=INT_MAX, description="Most members of one group.")] = INT_MAX
    group_consumer_session_timeout_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=INT_MAX,
            description="How long a group of the consumer protocol (KIP-848) keeps a member that is not heard of.",
        ),
    ] = 45_000
    group_consumer_heartbeat_interval_ms: Annotated[
        int, Meta(ge=1, le=INT_MAX, description="How often members of such a group are told to send a heartbeat.")
    ] = 5_000
    group_consumer_max_size: Annotated[
        int, Meta(ge=1, le=INT_MAX, description="Most members of one group of the consumer protocol.")
    ] = INT_MAX
    group_consumer_assignors: Annotated[
        str,
        Meta(
            pattern=r"(uniform|range)(,(?!\1)(uniform|range))?",
            description="Which assignors such a group may use: uniform, range, or both, separated by a comma. "
            "The first is for groups whose members ask for none.",
        ),
    ] = "uniform,range"
    offsets_retention_minutes: Annotated[
        int,
        Meta(
            ge=1,
            le=INT_MAX,
            description="How long a group is remembered that has no members and commits no offsets, with its offsets. "
            "Groups in which Spark queries remember what they have committed are remembered for ever.",
        ),
    ] = 10_080
    offsets_retention_check_interval_ms: Annotated[
        int, Meta(ge=1, le=LONG_MAX, description="How often groups are looked for that are to be forgotten.")
    ] = 600_000
    offset_metadata_max_bytes: Annotated[
        int, Meta(ge=0, le=INT_MAX, description="Most bytes of metadata with a committed offset.")
    ] = 4096
