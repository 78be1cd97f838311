"""The broker's options for logins. None of them can be set while the broker runs."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from exacta.config.ranges import INT_MAX, LONG_MAX


@dataclass(frozen=True, kw_only=True)
class LoginOptions:
    """The options for logins, each with its default."""

    sasl_enabled_mechanisms: Annotated[
        str,
        Meta(description="Mechanisms by which clients log in: SCRAM-SHA-256, SCRAM-SHA-512, PLAIN; with commas."),
    ] = "SCRAM-SHA-256,SCRAM-SHA-512"
    sasl_server_max_receive_size: Annotated[
        int, Meta(ge=1024, le=INT_MAX, description="Largest message in bytes of a client that has not logged in.")
    ] = 64 << 10
    connections_max_reauth_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=LONG_MAX,
            description="When a client must have logged in once more on its connection (KIP-368); 0: never.",
        ),
    ] = 0
    connection_failed_authentication_delay_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=INT_MAX,
            description="Wait before the first refusal of a login; it doubles with each further one of an address, up "
            "to five seconds.",
        ),
    ] = 100
