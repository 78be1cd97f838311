"""The options that say where a server listens, and the doors that they stand for.

`exacta serve` has them as flags (`--pulsar-listen`), and its file as keys (`pulsar.listen`). Each pair of them is one
door. Several doors for Kafka's clients are what Kafka's own `listeners` is for (`kafka_listeners.py`).
"""

from collections.abc import Mapping
from typing import NamedTuple

from exacta.front.doors import Door, Endpoint, TransportSecurity


class _Option(NamedTuple):
    front: str
    name: str
    security: TransportSecurity
    listen: str
    advertise: str | None = None


_OPTIONS = (
    _Option("kafka", "PLAINTEXT", TransportSecurity.PLAINTEXT, "listen", "advertise"),
    _Option("pulsar", "PULSAR", TransportSecurity.PLAINTEXT, "pulsar_listen", "pulsar_advertise"),
    _Option("pulsar", "PULSAR_TLS", TransportSecurity.TLS, "pulsar_tls_listen", "pulsar_tls_advertise"),
    _Option("web", "WEB", TransportSecurity.PLAINTEXT, "web_listen"),
    _Option("web", "WEB_TLS", TransportSecurity.TLS, "web_tls_listen"),
)

OTHERS_NAMES = frozenset(each.name for each in _OPTIONS if each.front != "kafka")
"""The names of doors that no Kafka listener may have."""

ENDPOINTS = tuple(name for each in _OPTIONS for name in (each.listen, each.advertise) if name is not None)
"""The names of all such options, as flags have them without their dashes."""


def doors_of(endpoints: Mapping[str, Endpoint]) -> list[Door]:
    """Return the doors that options of these names and values stand for; what has no `listen` is no door."""
    return [
        Door(
            front=each.front,
            name=each.name,
            endpoint=endpoints[each.listen],
            advertised=endpoints.get(each.advertise or ""),
            security=each.security,
        )
        for each in _OPTIONS
        if each.listen in endpoints
    ]
