"""The values that say which cluster is meant and how the connections to it are secured.

The module does no I/O: `tls.py` makes TLS of the values, and `sasl.py` logs in. The values are frozen and hashable, so
that a client can be kept by its cluster, and they can be pickled to where the tasks run; a secret is in none of their
reprs.
"""

from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from exacta.client.deadline import REQUEST_TIMEOUT_MS

PLAIN = "PLAIN"

# The three classes that hold a secret are dataclasses, since a `Struct` cannot leave a field out of its repr.


@dataclass(frozen=True, kw_only=True)
class TrustStore:
    """The certificates that are trusted: a file, or PEM text. Without `kind` the file says what it is."""

    location: str | None = None
    certificates: str | None = None
    kind: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class KeyStore:
    """The client's own certificate: a file with key and chain, or both as PEM text."""

    location: str | None = None
    key: str | None = field(default=None, repr=False)
    certificate_chain: str | None = None
    kind: str | None = None
    password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)


class Tls(Struct, frozen=True, kw_only=True):
    """TLS; without a truststore the machine's own authorities are trusted."""

    truststore: TrustStore | None = None
    keystore: KeyStore | None = None
    verify_host_name: bool = True


@dataclass(frozen=True, kw_only=True)
class Sasl:
    """A login by name and password."""

    mechanism: str
    username: str
    password: str = field(repr=False)


class Security(Struct, frozen=True, kw_only=True):
    """The steps that each connection takes before its first request."""

    tls: Tls | None = None
    sasl: Sasl | None = None

    @property
    def protocol(self) -> str:
        """Return Kafka's name of the protocol."""
        if self.sasl is not None:
            return "SASL_PLAINTEXT" if self.tls is None else "SASL_SSL"
        return "PLAINTEXT" if self.tls is None else "SSL"

    @property
    def principal(self) -> str:
        """Return, in words, who we are to the brokers."""
        if self.sasl is not None:
            return f"user '{self.sasl.username}'"
        if self.tls is not None and self.tls.keystore is not None:
            return "the owner of the client certificate"
        return "a client that does not log in"


PLAINTEXT = Security()
"""A connection without TLS and without login."""

CLIENT_ID = "exacta-spark"
"""The name by which a client tells the brokers who it is, unless the user chose one."""


class Cluster(Struct, frozen=True, kw_only=True):
    """A cluster and how it is reached: all that a client is made from."""

    bootstrap: str
    security: Security = PLAINTEXT
    client_id: str = CLIENT_ID
    request_timeout_ms: int = REQUEST_TIMEOUT_MS

    def by_tls(self, tls: Tls) -> "Cluster":
        """Return the same cluster, reached by TLS."""
        return replace(self, security=replace(self.security, tls=tls))
