"""The broker's options for logins by Apache Pulsar's names: those of its clients, by a token, a password or TLS.

None of them can be set while the broker runs. Users are the log's own, as for Kafka's clients: there is no file of
passwords (`basicAuthConf`).
"""

from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta

from exacta.config.errors import ConfigurationError
from exacta.config.ranges import INT_MAX
from exacta.spelling import did_you_mean

_PROVIDER: Final = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
TOKEN: Final = "token"
BASIC: Final = "basic"
TLS: Final = "tls"
METHODS: Final = {f"{_PROVIDER}Token": TOKEN, f"{_PROVIDER}Basic": BASIC, f"{_PROVIDER}Tls": TLS}
"""The classes that `authenticationProviders` can name; what they do is done here without them."""

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512"),
)
"""The algorithms that `tokenPublicAlg` can name, as Apache Pulsar's."""


@dataclass(frozen=True, kw_only=True)
class PulsarLoginOptions:
    """The options for logins by Apache Pulsar's names, each with its default."""

    authenticationEnabled: Annotated[
        bool, Meta(description="Whether Pulsar and HTTP clients log in, in one of the ways of authenticationProviders.")
    ] = False
    authenticationProviders: Annotated[
        str,
        Meta(
            description=f"Ways to log in, with commas: {_PROVIDER}Token (tokens), …Basic (name and password of a user "
            "of the log) and …Tls (certificates)."
        ),
    ] = ""
    authenticationRefreshCheckSeconds: Annotated[
        int,
        Meta(
            ge=1,
            le=INT_MAX,
            description="A Pulsar client is asked for a new token this many seconds before its token ends, and loses "
            "its connection at the end if none has come.",
        ),
    ] = 60
    tokenSecretKey: Annotated[
        str,
        Meta(
            description="Secret by which tokens are signed (HMAC), as file:///… or data:;base64,….",
            extra={"secret": True},
        ),
    ] = ""
    tokenPublicKey: Annotated[
        str,
        Meta(description="Public key by which tokens are checked, in DER or PEM, as file:///… or data:;base64,…."),
    ] = ""
    tokenPublicAlg: Annotated[
        str,
        Meta(
            pattern="|".join(ALGORITHMS),
            description="Algorithm by which tokens are signed whose key is tokenPublicKey; no token chooses another.",
        ),
    ] = "RS256"
    tokenAuthClaim: Annotated[str, Meta(description="Claim of a token that names the user.")] = "sub"
    tokenAudienceClaim: Annotated[
        str, Meta(description="Claim of a token that names its audiences, with tokenAudience.")
    ] = "aud"
    tokenAudience: Annotated[
        str,
        Meta(
            description="Audience that a token must name. Empty: a token needs to name none, and one that does is "
            "refused, since it is for somebody else."
        ),
    ] = ""
    pulsar_token_require_expiry: Annotated[
        bool,
        Meta(
            description="Whether a token must say when it ends (`exp`). Apache Pulsar's tokens often do not, and hold "
            "for ever: then set this to false."
        ),
    ] = True


REFUSED: Final = {
    "anonymousUserRole": "clients without a login come in by a door that allow.anonymous names, as ANONYMOUS",
    "authenticateOriginalAuthData": "no proxy may speak for other clients here",
    "authorizationEnabled": "set authorizer.class.name, which turns access rules on for all clients",
    "authorizationProvider": "set authorizer.class.name, which turns access rules on for all clients",
    "basicAuthConf": "passwords are those of the log's users, which `exacta users add` makes",
    "proxyRoles": "no proxy may speak for other clients here: let clients connect to the broker itself",
    "tokenAllowedClockSkewSeconds": "a token ends when it says: keep the clocks right",
}
"""Options of Apache Pulsar about who may do what that are not served: to pass one over would open or close a door."""


def provider_of(method: str) -> str:
    """Return the class by which `authenticationProviders` names a method."""
    return next(name for name, found in METHODS.items() if found == method)


def methods(options: PulsarLoginOptions) -> frozenset[str]:
    """Return the authentication methods that Pulsar clients may use, by the names that they send.

    Raises ConfigurationError.
    """
    if not options.authenticationProviders:
        return frozenset()
    found = []
    for each in options.authenticationProviders.split(","):
        name = each.strip()
        if name not in METHODS:
            meant = did_you_mean(name, METHODS)
            raise ConfigurationError(
                f"authenticationProviders: there is no {name!r} here"
                + (f"; {meant}" if meant else f": it is some of {', '.join(METHODS)}")
            )
        found.append(METHODS[name])
    return frozenset(found)


def require_logins(options: PulsarLoginOptions) -> None:
    """Check what the options say together. Raises ConfigurationError."""
    found = methods(options)
    if options.authenticationEnabled is not bool(found):
        raise ConfigurationError(
            "authenticationEnabled and authenticationProviders need each other: set both, or leave both out"
        )
    keys = [name for name in ("tokenSecretKey", "tokenPublicKey") if getattr(options, name)]
    if TOKEN in found and len(keys) != 1:
        both = ", and not both" if keys else ""
        raise ConfigurationError(f"tokens are checked by one key: set tokenSecretKey or tokenPublicKey{both}")
    if keys and TOKEN not in found:
        raise ConfigurationError(f"{keys[0]} means nothing unless authenticationProviders names {_PROVIDER}Token")
    if options.tokenAudienceClaim != PulsarLoginOptions.tokenAudienceClaim and not options.tokenAudience:
        raise ConfigurationError("tokenAudienceClaim needs tokenAudience, which says what the claim must name")
