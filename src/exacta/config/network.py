"""The broker's options for connections, requests and the memory that clients may take up."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from exacta.config.ranges import INT_MAX, LONG_MAX


@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """The options for connections, requests and the memory that clients may take up, each with its default."""

    fetch_max_bytes: Annotated[
        int, Meta(ge=1024, le=INT_MAX, description="Most bytes of records in one fetch response.")
    ] = 57_671_680
    socket_request_max_bytes: Annotated[
        int, Meta(ge=1024, le=INT_MAX, description="Largest request; a larger one is refused unread.")
    ] = 104_857_600
    queued_max_request_bytes: Annotated[
        int,
        Meta(
            ge=1,
            le=LONG_MAX,
            description="Most bytes of requests of all connections that are not answered yet; beyond it, who holds "
            "much is read no more for a while.",
        ),
    ] = 256 << 20
    queued_max_request_bytes_per_connection: Annotated[
        int,
        Meta(
            ge=1,
            le=LONG_MAX,
            description="Most bytes of requests of one connection at work, and of answers that wait for their place; "
            "one request may be larger.",
        ),
    ] = 16 << 20
    queued_max_response_bytes: Annotated[
        int,
        Meta(
            ge=1,
            le=LONG_MAX,
            description="Most bytes of answers that clients have not taken yet; beyond it, fetches wait, and whatever "
            "else has long answers.",
        ),
    ] = 256 << 20
    connections_max_stall_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=INT_MAX,
            description="When a connection is closed whose request does not come on, or whose answers are not taken, "
            "while others wait for the memory.",
        ),
    ] = 10_000
    max_connections: Annotated[
        int,
        Meta(ge=0, le=INT_MAX, description="Most connections; never more than half of the files that may be open."),
    ] = INT_MAX
    max_connections_per_ip: Annotated[
        int, Meta(ge=0, le=INT_MAX, description="Most connections from one address; a further one is closed at once.")
    ] = INT_MAX
    connections_max_idle_ms: Annotated[
        int, Meta(ge=-1, le=LONG_MAX, description="When a connection on which nothing happens is closed; -1: never.")
    ] = 600_000
    max_in_flight_requests_per_connection: Annotated[
        int, Meta(ge=1, le=INT_MAX, description="Requests of one connection at work; further ones wait to be read.")
    ] = 512
