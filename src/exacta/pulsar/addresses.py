"""The addresses by which Pulsar's clients find this broker, and the URLs that they are told."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from exacta.front.doors import WILDCARDS, Door, Endpoint, TransportSecurity


class Urls(Struct, frozen=True, kw_only=True):
    """The URLs that one client is told; an empty one: nothing listens there."""

    broker: str = ""
    broker_tls: str = ""
    web: str = ""
    web_tls: str = ""


class Addresses(Struct, frozen=True, kw_only=True):
    """The endpoints that clients are told, for all that is listened on. None: not at all. See `Door.told`."""

    broker: Endpoint | None = None
    broker_tls: Endpoint | None = None
    web: Endpoint | None = None
    web_tls: Endpoint | None = None

    def urls(self, local_host: str) -> Urls:
        """Return the URLs for a client that has connected to this address."""
        return Urls(
            broker=_url("pulsar", self.broker, local_host),
            broker_tls=_url("pulsar+ssl", self.broker_tls, local_host),
            web=_url("http", self.web, local_host),
            web_tls=_url("https", self.web_tls, local_host),
        )


def addresses_at(broker: Sequence[Door], web: Sequence[Door]) -> Addresses:
    """Return what clients are told, by the doors of Pulsar's front and of the web front; the first of a kind counts.

    The web front is found by the name of the broker itself.
    """
    plain, by_tls = _first(broker, TransportSecurity.PLAINTEXT), _first(broker, TransportSecurity.TLS)
    told = Addresses(broker=_told(plain), broker_tls=_told(by_tls))
    return replace(
        told,
        web=_web(_first(web, TransportSecurity.PLAINTEXT), told.broker or told.broker_tls),
        web_tls=_web(_first(web, TransportSecurity.TLS), told.broker_tls or told.broker),
    )


def _first(doors: Sequence[Door], security: TransportSecurity) -> Door | None:
    return next((each for each in doors if each.security is security), None)


def _told(door: Door | None) -> Endpoint | None:
    return None if door is None else door.told


def _web(door: Door | None, broker: Endpoint | None) -> Endpoint | None:
    return None if door is None or broker is None else Endpoint(broker.host, door.endpoint.port)


def _url(scheme: str, address: Endpoint | None, local_host: str) -> str:
    if address is None:
        return ""
    host = local_host if address.host in WILDCARDS else address.host
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{address.port}"
