"""The broker's options for how the Kafka front presents the broker to its clients."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from exacta.config.ranges import INT_MAX


@dataclass(frozen=True, kw_only=True)
class KafkaOptions:
    """The options for how the Kafka front presents the broker to its clients, each with its default."""

    accept_any_replication_factor: Annotated[
        bool,
        Meta(
            description="Create a topic that asks for more than one replica, too; it has one. For tests of programs "
            "that ask for three."
        ),
    ] = False
    auto_create_topics_enable: Annotated[
        bool, Meta(description="Create a topic when a client that may do so asks for it.")
    ] = True
    max_incremental_fetch_session_cache_slots: Annotated[
        int, Meta(ge=0, le=INT_MAX, description="Most fetch sessions (KIP-227); readers without one go on in full.")
    ] = 1_000
    list_offsets_visible_end: Annotated[
        bool,
        Meta(
            description="Tell readers of committed records the end of the last one that they get, not the last stable "
            "offset: for programs that read until they have the record before the end, and would wait for ever for a "
            "marker."
        ),
    ] = False
    node_id: Annotated[int, Meta(ge=0, le=INT_MAX, description="The id by which clients know this broker.")] = 0
