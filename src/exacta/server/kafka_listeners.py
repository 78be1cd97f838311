"""Kafka's keys about listeners, as the doors for Kafka's clients, each with the endpoint that its clients are told.

A listener has a name, and `listener.security.protocol.map` says which security protocol the name stands for. Listeners
of controllers are left out, since no controller stands beside the broker. All others must speak PLAINTEXT: an operator
who asked for TLS or for logins would otherwise believe to have it. As in Kafka, each has a port of its own; one of IPv4
and one of IPv6 may share one.
"""

from collections.abc import Set
from itertools import combinations

from msgspec import Struct

from exacta.config.configuration import ConfigurationError
from exacta.front.doors import Door, Endpoint
from exacta.server.listeners import parse_endpoint

_PLAINTEXT = "PLAINTEXT"
_SECURITY_PROTOCOLS = (_PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class KafkaListeners(Struct, frozen=True):
    """The doors and the endpoint that Kafka's keys name."""

    doors: tuple[Door, ...] = ()
    """The listeners for clients in their order; none where no key names them."""
    advertise: Endpoint | None = None
    """The endpoint that clients of the one listener are told which no key names; None: no key says it."""


def kafka_listeners(keys: dict[str, str]) -> KafkaListeners:
    """Return what `listeners`, `advertised.listeners` and the keys beside them say. Raises ConfigurationError."""
    controllers = {each.upper() for each in _parts(keys.get("controller.listener.names", ""))}
    advertised = None
    if "advertised.listeners" in keys:
        advertised = _endpoints("advertised.listeners", keys["advertised.listeners"], controllers)
    if "listeners" not in keys:
        _require_the_same({_PLAINTEXT}, advertised)
        return KafkaListeners(advertise=None if advertised is None else advertised[_PLAINTEXT])
    protocols = dict(zip(_SECURITY_PROTOCOLS, _SECURITY_PROTOCOLS, strict=True))
    for each in _parts(keys.get("listener.security.protocol.map", "")):
        name, _, protocol = each.partition(":")
        protocols[name.strip().upper()] = protocol.strip().upper()
    served = _endpoints("listeners", keys["listeners"], controllers)
    if not served:
        raise ConfigurationError("listeners must name a listener for clients")
    for name in served:
        _require_plaintext(name, protocols)
    _require_ports(served)
    _require_the_same(served.keys(), advertised)
    told = advertised or {}
    return KafkaListeners(
        tuple(
            Door(front="kafka", name=name, endpoint=endpoint, advertised=told.get(name))
            for name, endpoint in served.items()
        )
    )


def _parts(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _endpoints(key: str, text: str, controllers: set[str]) -> dict[str, Endpoint]:
    found: dict[str, Endpoint] = {}
    for each in _parts(text):
        name, separator, where = each.partition("://")
        if not separator:
            raise ConfigurationError(f"{key}: expected NAME://HOST:PORT, not {each!r}")
        if name.upper() in controllers:
            continue
        if name.upper() in found:
            raise ConfigurationError(f"{key}: the listener {name.upper()} stands there twice")
        try:
            found[name.upper()] = parse_endpoint(where)
        except ValueError as error:
            raise ConfigurationError(f"{key}: {error}") from error
    return found


def _require_ports(served: dict[str, Endpoint]) -> None:
    for (name, one), (other_name, other) in combinations(served.items(), 2):
        are_of_two_families = one.host and other.host and (":" in one.host) is not (":" in other.host)
        if one.port == other.port != 0 and not are_of_two_families:
            raise ConfigurationError(f"listeners: {name} and {other_name} have the same port, {one.port}")


def _require_the_same(served: Set[str], advertised: dict[str, Endpoint] | None) -> None:
    if advertised is None:
        return
    for name in served:
        if name not in advertised:
            raise ConfigurationError(f"advertised.listeners must have an entry for the listener {name}")
    for name in advertised:
        if name not in served:
            raise ConfigurationError(f"advertised.listeners: there is no listener {name} in listeners")


def _require_plaintext(name: str, protocols: dict[str, str]) -> None:
    protocol = protocols.get(name)
    if protocol is None:
        raise ConfigurationError(
            f"listeners: which security protocol the listener {name} has, listener.security.protocol.map must say"
        )
    if protocol != _PLAINTEXT:
        raise ConfigurationError(
            f"listeners: the listener {name} is to speak {protocol}, and Kafka's clients are served by PLAINTEXT only"
        )
