"""The broker whose value of an option counts, where several share a log.

A broker that leads decides by its own options, for all. Each may lead, so all should be given the same ones: a change
of leader would change them otherwise. Only what a broker does for its own clients and its own machine goes by its own.
"""

from dataclasses import fields
from typing import Final

from exacta.config.cluster import ClusterOptions
from exacta.config.doors import DoorOptions
from exacta.config.logins import LoginOptions
from exacta.config.network import NetworkOptions
from exacta.config.pulsar_logins import PulsarLoginOptions
from exacta.config.security import SecurityOptions
from exacta.config.tls import TlsOptions
from exacta.config.web import WebOptions

_ROOMS: Final = (
    ClusterOptions,
    DoorOptions,
    LoginOptions,
    NetworkOptions,
    PulsarLoginOptions,
    SecurityOptions,
    TlsOptions,
    WebOptions,
)
_OTHERS: Final = ("max_incremental_fetch_session_cache_slots", "node_id")

OF_EACH_BROKER: Final = frozenset(
    name.replace("_", ".") for name in (*(each.name for room in _ROOMS for each in fields(room)), *_OTHERS)
)
"""The options by whose value each broker goes for itself. Of all others the leader's value counts."""
