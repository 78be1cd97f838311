"""The way to an embedded broker: the addresses of its doors, and what clients that speak TLS need.

The doors are known from the beginning, and their ports from the first start on.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from exacta.client.security import Sasl
from exacta.front.doors import WILDCARDS, Door, Endpoint, TransportSecurity
from exacta.server.errors import ServerError
from exacta.server.listeners import DEFAULT_HOST
from exacta.testing.authority import Authority
from exacta.testing.questions import Questions

_NO_TLS = "the broker has no TLS: make it with tls=True"


class Reachable(Questions):
    """A broker with these doors; the first is for Kafka clients, and speaks TLS where there is an authority."""

    def __init__(self, doors: Sequence[Door], authority: Authority | None, login: Sasl | None = None) -> None:
        self._authority = authority
        self._doors = list(doors)
        if authority is not None or login is not None:
            security = TransportSecurity.PLAINTEXT if authority is None else TransportSecurity.TLS
            name = f"{'' if login is None else 'SASL_'}{'PLAINTEXT' if authority is None else 'SSL'}"
            self._doors[0] = replace(self._doors[0], name=name, security=security, login=login is not None)

    @property
    def bootstrap_servers(self) -> str:
        """Return where clients connect: `host:port`, known from the first start on."""
        return str(_started(self._doors[0].endpoint))

    @property
    def pulsar_url(self) -> str:
        """Return where Pulsar's clients connect: `pulsar://host:port`, known from the first start on.

        Raises ServerError for a broker that was not made with `pulsar=True`.
        """
        return self._url("pulsar", "pulsar", TransportSecurity.PLAINTEXT)

    @property
    def pulsar_tls_url(self) -> str:
        """Return where Pulsar's clients connect by TLS: `pulsar+ssl://host:port`. See `pulsar_url`."""
        return self._url("pulsar+ssl", "pulsar", TransportSecurity.TLS)

    @property
    def web_url(self) -> str:
        """Return where Pulsar's clients ask by HTTP: `http://host:port`. See `pulsar_url`."""
        return self._url("http", "web", TransportSecurity.PLAINTEXT)

    @property
    def web_tls_url(self) -> str:
        """Return where Pulsar's clients ask by HTTPS: `https://host:port`. See `pulsar_url`."""
        return self._url("https", "web", TransportSecurity.TLS)

    def _url(self, scheme: str, front: str, security: TransportSecurity) -> str:
        found = {(each.front, each.security): each.endpoint for each in self._doors}
        if ("pulsar", TransportSecurity.PLAINTEXT) not in found:
            raise ServerError("the broker does not serve Pulsar's clients: make it with pulsar=True")
        if (front, security) not in found:
            raise ServerError(_NO_TLS)
        return f"{scheme}://{_started(found[front, security])}"

    @property
    def tls_ca(self) -> str:
        """Return the file with the authority that clients trust, in PEM. Raises ServerError without `tls=True`."""
        return self._of_tls().ca

    def tls_certificate(self, name: str) -> str:
        """Return a file with a key and a certificate for a client, in PEM; its principal is `User:` and the name.

        Raises ServerError without `tls=True`.
        """
        return self._of_tls().client(name)

    def _of_tls(self) -> Authority:
        if self._authority is None:
            raise ServerError(_NO_TLS)
        return self._authority


def _started(endpoint: Endpoint) -> Endpoint:
    if endpoint.port == 0:
        raise ServerError("the broker has not been started")
    if endpoint.host in WILDCARDS:
        return Endpoint("::1" if ":" in endpoint.host else DEFAULT_HOST, endpoint.port)
    return endpoint
