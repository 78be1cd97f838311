"""Kafka's keys about listeners, as the doors for Kafka's clients, each with the endpoint that its clients are told.

A listener has a name, and `listener.security.protocol.map` says which security protocol the name stands for: SSL is
TLS, and SASL_PLAINTEXT and SASL_SSL have logins. `listener.name.NAME.ssl.…` and
`listener.name.NAME.sasl.enabled.mechanisms` set an option for one listener alone.
Listeners of controllers are left out, since no controller stands beside the broker. As in Kafka, each has a port of its
own; one of IPv4 and one of IPv6 may share one.
"""

from collections.abc import Mapping, Set
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from exacta.config.errors import ConfigurationError
from exacta.front.doors import Door, Endpoint, TransportSecurity
from exacta.server.door_options import OTHERS_NAMES
from exacta.server.listeners import parse_endpoint
from exacta.spelling import did_you_mean

_PLAINTEXT = "PLAINTEXT"
_SECURITY_PROTOCOLS = {
    _PLAINTEXT: (TransportSecurity.PLAINTEXT, False),
    "SSL": (TransportSecurity.TLS, False),
    "SASL_PLAINTEXT": (TransportSecurity.PLAINTEXT, True),
    "SASL_SSL": (TransportSecurity.TLS, True),
}
"""Kafka's security protocols: what protects the bytes, and whether clients log in by SASL."""


class KafkaListeners(Struct, frozen=True):
    """The doors and the endpoint that Kafka's keys name."""

    doors: tuple[Door, ...] = ()
    """The listeners for clients in their order; none where no key names them."""
    advertise: Endpoint | None = None
    """The endpoint that clients of the one listener are told which no key names; None: no key says it."""


def protocol_of(door: Door) -> str:
    """Return Kafka's word for the security of a door."""
    return next(name for name, found in _SECURITY_PROTOCOLS.items() if found == (door.security, door.login))


def kafka_listeners(
    keys: Mapping[str, str], own: Mapping[str, Mapping[str, int | bool | str]] | None = None
) -> KafkaListeners:
    """Return what `listeners`, `advertised.listeners` and the keys beside them say. Raises ConfigurationError.

    `own` are the options that listeners have for themselves, by the listener's name in upper case.
    """
    controllers = {each.upper() for each in _parts(keys.get("controller.listener.names", ""))}
    if "inter.broker.listener.name" in keys:
        raise ConfigurationError(
            "inter.broker.listener.name: there is no other broker that a listener could be for; leave it out"
        )
    advertised = None
    if "advertised.listeners" in keys:
        advertised = _endpoints("advertised.listeners", keys["advertised.listeners"], controllers)
    if "listeners" not in keys:
        _require_the_same({_PLAINTEXT}, advertised)
        _require_listeners(own or {}, {_PLAINTEXT})
        return KafkaListeners(advertise=None if advertised is None else advertised[_PLAINTEXT])
    protocols = _protocols(keys.get("listener.security.protocol.map", ""))
    served = _endpoints("listeners", keys["listeners"], controllers)
    if not served:
        raise ConfigurationError("listeners must name a listener for clients")
    _require_ports(served)
    _require_the_same(served.keys(), advertised)
    _require_listeners(own or {}, served.keys())
    doors = [_door(name, endpoint, protocols) for name, endpoint in served.items()]
    told = advertised or {}
    found = [replace(each, advertised=told.get(each.name), options=(own or {}).get(each.name, {})) for each in doors]
    for door in found:
        if "sasl_enabled_mechanisms" in door.options and not door.login:
            raise ConfigurationError(
                f"listener.name.{door.name.lower()}.sasl.enabled.mechanisms: nobody logs in by {door.name}: let "
                "listener.security.protocol.map say SASL_SSL or SASL_PLAINTEXT of it"
            )
    return KafkaListeners(tuple(found))


def _protocols(text: str) -> dict[str, str]:
    protocols = {name: name for name in _SECURITY_PROTOCOLS}
    named: dict[str, str] = {}
    for each in _parts(text):
        name, separator, protocol = (part.strip().upper() for part in each.partition(":"))
        if not separator or protocol not in _SECURITY_PROTOCOLS:
            meant = did_you_mean(protocol, _SECURITY_PROTOCOLS)
            raise ConfigurationError(
                f"listener.security.protocol.map: expected NAME:PROTOCOL with {', '.join(_SECURITY_PROTOCOLS)}, not "
                f"{each!r}" + (f"; {meant}" if meant else "")
            )
        if named.setdefault(name, protocol) != protocol:
            raise ConfigurationError(f"listener.security.protocol.map: {name} stands there as {named[name]}, too")
    return protocols | named


def _door(name: str, endpoint: Endpoint, protocols: Mapping[str, str]) -> Door:
    protocol = protocols.get(name)
    if protocol is None:
        raise ConfigurationError(
            f"listeners: which security protocol the listener {name} has, listener.security.protocol.map must say"
        )
    if name in OTHERS_NAMES:
        raise ConfigurationError(f"listeners: {name} is the name of a door for other clients")
    security, login = _SECURITY_PROTOCOLS[protocol]
    return Door(front="kafka", name=name, endpoint=endpoint, security=security, login=login)


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


def _require_listeners(own: Mapping[str, object], served: Set[str]) -> None:
    for name in own:
        if name not in served:
            raise ConfigurationError(f"listener.name.{name.lower()}: there is no listener {name} in listeners")
