"""Kafka's keys about listeners, as the one endpoint for Kafka's clients and the one that they are told.

A listener has a name, and `listener.security.protocol.map` says which security protocol the name stands for. Listeners
of controllers are left out, since no controller stands beside the broker. What is left must be one listener that speaks
PLAINTEXT: whoever asked for TLS, for logins or for a second address would otherwise believe to have it.
"""

from msgspec import Struct

from exacta.config.configuration import ConfigurationError
from exacta.front.doors import Endpoint
from exacta.server.listeners import parse_endpoint

_PLAINTEXT = "PLAINTEXT"
_SECURITY_PROTOCOLS = (_PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class KafkaListeners(Struct, frozen=True):
    """The endpoints that Kafka's keys name; None where they name none."""

    listen: Endpoint | None
    advertise: Endpoint | None


def kafka_listeners(keys: dict[str, str]) -> KafkaListeners:
    """Return what `listeners`, `advertised.listeners` and the keys beside them say. Raises ConfigurationError."""
    controllers = {each.upper() for each in _parts(keys.get("controller.listener.names", ""))}
    protocols = dict(zip(_SECURITY_PROTOCOLS, _SECURITY_PROTOCOLS, strict=True))
    for each in _parts(keys.get("listener.security.protocol.map", "")):
        name, _, protocol = each.partition(":")
        protocols[name.strip().upper()] = protocol.strip().upper()
    name, listen = _PLAINTEXT, None
    if "listeners" in keys:
        served = _endpoints("listeners", keys["listeners"], controllers)
        if len(served) != 1:
            which = " and ".join(served) or "none"
            raise ConfigurationError(f"listeners must name one listener for clients, not {which}")
        [(name, listen)] = served.items()
        _require_plaintext(name, protocols)
    if "advertised.listeners" not in keys:
        return KafkaListeners(listen, None)
    advertised = _endpoints("advertised.listeners", keys["advertised.listeners"], controllers)
    if name not in advertised:
        raise ConfigurationError(f"advertised.listeners must have an entry for the listener {name}")
    return KafkaListeners(listen, advertised[name])


def _parts(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _endpoints(key: str, text: str, controllers: set[str]) -> dict[str, Endpoint]:
    found = {}
    for each in _parts(text):
        name, separator, where = each.partition("://")
        if not separator:
            raise ConfigurationError(f"{key}: expected NAME://HOST:PORT, not {each!r}")
        if name.upper() in controllers:
            continue
        try:
            found[name.upper()] = parse_endpoint(where)
        except ValueError as error:
            raise ConfigurationError(f"{key}: {error}") from error
    return found


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
