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
        Meta(
            description="Mechanisms by which clients log in, with commas: SCRAM-SHA-256, SCRAM-SHA-512, PLAIN, "
            "OAUTHBEARER."
        ),
    ] = "SCRAM-SHA-256,SCRAM-SHA-512"
    sasl_server_max_receive_size: Annotated[
        int, Meta(ge=1024, le=INT_MAX, description="Largest message in bytes of a client that has not logged in.")
    ] = 64 << 10
    sasl_oauthbearer_jwks_endpoint_url: Annotated[
        str,
        Meta(description="Address of the keys by which tokens are checked: a JSON Web Key Set at https:// or file://."),
    ] = ""
    sasl_oauthbearer_jwks_endpoint_refresh_ms: Annotated[
        int, Meta(ge=1_000, le=LONG_MAX, description="When the keys of tokens are read again.")
    ] = 3_600_000
    sasl_oauthbearer_expected_issuer: Annotated[str, Meta(description="Issuer that a token must name (`iss`).")] = ""
    sasl_oauthbearer_expected_audience: Annotated[
        str, Meta(description="Audiences, with commas, of which a token must name one (`aud`).")
    ] = ""
    sasl_oauthbearer_sub_claim_name: Annotated[str, Meta(description="Claim of a token that names the user.")] = "sub"
    sasl_oauthbearer_clock_skew_seconds: Annotated[
        int,
        Meta(ge=0, le=INT_MAX, description="Seconds by which the clocks of a token's issuer and of the broker differ."),
    ] = 30
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
