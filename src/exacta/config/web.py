"""The broker's options for its web front; without `--web-listen` or `--web-tls-listen` they do nothing."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta


@dataclass(frozen=True, kw_only=True)
class WebOptions:
    """The options for the web front, each with its default."""

    web_metrics_max_series: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="The most topics, groups or subscriptions that have series of their own in one metric; those "
            "that do most, or lag most, have one, and the others are summed as `(others)`. Raise "
            "it to watch more of them one by one: each is a series more for the monitoring system.",
        ),
    ] = 100
    web_allowed_hosts: Annotated[
        str,
        Meta(
            pattern=r"([A-Za-z0-9_.-]+(,[A-Za-z0-9_.-]+)*)?",
            description="Names, with commas between them, by which HTTP clients may call this server besides localhost "
            "and the address that they have connected to; a request to any other name is refused (DNS rebinding).",
        ),
    ] = ""
