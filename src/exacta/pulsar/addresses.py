"""The addresses by which Pulsar's clients find the brokers, and the URLs that they are told."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from exacta.front.doors import WILDCARDS, Door, Endpoint, TransportSecurity
from exacta.ports.cluster import Node


class Urls(Struct, frozen=True, kw_only=True):
    """The URLs that one client is told; an empty one: nothing listens there."""

    broker: str = ""
    broker_tls: str = ""
    web: str = ""
    web_tls: str = ""


class Addresses(Struct, frozen=True, kw_only=True):
    """The first door of each kind; its endpoint is told to clients (`Door.told`). None: there is none.

    The web front is found by the name of the broker itself. Another broker is found by its doors of the same names.
    """

    broker: Door | None = None
    broker_tls: Door | None = None
    web: Door | None = None
    web_tls: Door | None = None

    def urls(self, local_host: str) -> Urls:
        """Return the URLs of this broker, for a client that has connected to this address."""
        return self._urls(_told, local_host)

    def urls_of(self, node: Node) -> Urls:
        """Return the URLs of another broker, as it has announced itself."""
        return self._urls(lambda door: _announced(node, door), "")

    def _urls(self, told: Callable[[Door | None], Endpoint | None], local_host: str) -> Urls:
        plain, by_tls = told(self.broker), told(self.broker_tls)
        return Urls(
            broker=_url("pulsar", plain, local_host),
            broker_tls=_url("pulsar+ssl", by_tls, local_host),
            web=_url("http", _named_as(plain or by_tls, told(self.web)), local_host),
            web_tls=_url("https", _named_as(by_tls or plain, told(self.web_tls)), local_host),
        )


def addresses_at(broker: Sequence[Door], web: Sequence[Door]) -> Addresses:
    """Return the addresses by the doors of Pulsar's front and of the web front."""
    return Addresses(
        broker=_first(broker, TransportSecurity.PLAINTEXT),
        broker_tls=_first(broker, TransportSecurity.TLS),
        web=_first(web, TransportSecurity.PLAINTEXT),
        web_tls=_first(web, TransportSecurity.TLS),
    )


def _first(doors: Sequence[Door], security: TransportSecurity) -> Door | None:
    return next((each for each in doors if each.security is security), None)


def _told(door: Door | None) -> Endpoint | None:
    return None if door is None else door.told


def _announced(node: Node, door: Door | None) -> Endpoint | None:
    found = None if door is None else node.addresses.get(door.name)
    return None if found is None else Endpoint(*found)


def _named_as(broker: Endpoint | None, web: Endpoint | None) -> Endpoint | None:
    return None if broker is None or web is None else Endpoint(broker.host, web.port)


def _url(scheme: str, address: Endpoint | None, local_host: str) -> str:
    if address is None:
        return ""
    host = local_host if address.host in WILDCARDS else address.host
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{address.port}"
