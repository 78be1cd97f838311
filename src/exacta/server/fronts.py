"""The table of fronts: each by its name, what it needs, how it is spoken of, and how it is made.

The server asks this table, and knows no front by its name. A front is loaded when it is made, if it needs a package
that not everybody has.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from exacta.front.broker import Broker
from exacta.front.doors import TransportSecurity
from exacta.kafka.connection import KafkaClientConnection
from exacta.kafka.front import KafkaFront
from exacta.server.host import Host
from exacta.server.requirement import require

if TYPE_CHECKING:
    from exacta.front.front import EarlyFront, Front


class FrontRow(Struct, frozen=True, kw_only=True):
    """One front. It has `make`, or `make_early` where it answers while the log is being read."""

    name: str
    clients: dict[TransportSecurity, str]
    """The words for the clients that come in by its doors."""
    requires: tuple[str, ...] = ()
    """The modules that it cannot do without."""
    need: str = ""
    """The words for such a need; `{}` stands for the package."""
    extra: str = ""
    """The extra that brings them."""
    make: "Callable[[Host, Broker], Front] | None" = None
    make_early: "Callable[[Host], EarlyFront] | None" = None

    def check(self) -> None:
        """Raise ServerError where something is missing."""
        for module in self.requires:
            require(module, self.need.format(module.replace("_", "-")), extra=self.extra)


def _kafka(
    host: Host, broker: Broker, *, connection: Callable[..., KafkaClientConnection] = KafkaClientConnection
) -> "Front":
    return KafkaFront(broker, host.loop, host.register, host.forget, make=connection)


def _pulsar(host: Host, broker: Broker) -> "Front":
    from exacta.pulsar.addresses import addresses_at
    from exacta.pulsar.front import PulsarFront  # loads protobuf

    addresses = addresses_at(host.doors_of("pulsar"), host.doors_of("web"))
    return PulsarFront(broker, addresses, host.loop, host.register, host.forget)


def _web(host: Host) -> "EarlyFront":
    from exacta.server.web_front import WebFront  # loads a web server

    return WebFront(host)


KAFKA = FrontRow(
    name="kafka",
    clients={TransportSecurity.PLAINTEXT: "Kafka's clients", TransportSecurity.TLS: "Kafka's clients by TLS"},
    make=_kafka,
)

PULSAR = FrontRow(
    name="pulsar",
    clients={TransportSecurity.PLAINTEXT: "Pulsar's clients", TransportSecurity.TLS: "Pulsar's clients by TLS"},
    requires=("google.protobuf.message",),
    need="Pulsar's clients need protobuf",
    extra="pulsar",
    make=_pulsar,
)

WEB = FrontRow(
    name="web",
    clients={TransportSecurity.PLAINTEXT: "HTTP", TransportSecurity.TLS: "HTTPS"},
    requires=("starlette", "uvicorn", "prometheus_client"),
    need="the web front needs {}",
    extra="web",
    make_early=_web,
)

FRONTS = (KAFKA, PULSAR, WEB)


def fronts_with(connection: Callable[..., KafkaClientConnection]) -> tuple[FrontRow, ...]:
    """Return the table with other connections for Kafka's clients: a test kit's have faults."""

    def make(host: Host, broker: Broker) -> "Front":
        return _kafka(host, broker, connection=connection)

    return tuple(replace(each, make=make) if each is KAFKA else each for each in FRONTS)
