"""The addresses by which Pulsar's clients find this broker, and the URLs that they are told."""

from msgspec import Struct

from exacta.front.doors import WILDCARDS, Endpoint


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


def _url(scheme: str, address: Endpoint | None, local_host: str) -> str:
    if address is None:
        return ""
    host = local_host if address.host in WILDCARDS else address.host
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{address.port}"
