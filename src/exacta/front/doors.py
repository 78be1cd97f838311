"""The doors of a server: where the clients of one front come in, what address they are told, and how they are secured.

A front has as many doors as the operator wants. A connection knows the door that it came in by, so that its client is
told the address of that door and not of another one, which it may be unable to reach.
"""

import enum
from collections.abc import Mapping

from msgspec import Struct

WILDCARDS = frozenset({"", "0.0.0.0", "::"})
"""Hosts that stand for every address of the machine."""


TLS_HANDSHAKE = b"\x16\x03"
"""The first bytes of a client that speaks TLS. Nothing that is served here begins so."""


class Endpoint(Struct, frozen=True):
    """A host and a port. An empty host means every address of this machine; port 0 means any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class TransportSecurity(enum.Enum):
    """The protection of what passes a door."""

    PLAINTEXT = "plaintext"
    TLS = "tls"


class Door(Struct, frozen=True, kw_only=True):
    """One endpoint of one front, by its name: the name of a Kafka listener, for instance."""

    front: str
    """The name of the front."""
    name: str
    """The name, in upper case. No other door has it."""
    endpoint: Endpoint
    """The endpoint that is listened on: with the real port, once it is bound."""
    advertised: Endpoint | None = None
    """The endpoint that clients are told to connect to; None: the one that is listened on. Port 0 means its port."""
    security: TransportSecurity = TransportSecurity.PLAINTEXT
    login: bool = False
    """True if clients log in by SASL before anything else."""
    options: Mapping[str, int | bool | str] = {}
    """The values that options of the broker have at this door alone, by the names of their fields."""

    @property
    def told(self) -> Endpoint:
        """The endpoint that clients are told; one of `WILDCARDS` as its host means the address that they have used."""
        told = self.advertised or self.endpoint
        return Endpoint(told.host, told.port or self.endpoint.port)

    def endpoint_for(self, local_host: str) -> Endpoint:
        """Return the endpoint that a client is told which has connected to this address of the machine."""
        told = self.told
        return Endpoint(local_host, told.port) if told.host in WILDCARDS else told
