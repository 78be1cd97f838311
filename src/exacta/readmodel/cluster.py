"""The brokers of a cluster as they are told: who leads, and how far each has come."""

from collections.abc import Mapping

from msgspec import Struct


class AskCluster(Struct, frozen=True, kw_only=True, tag="cluster"):
    """The question who serves the log. Every broker answers it, by what it knows itself."""


class BrokerStatus(Struct, frozen=True, kw_only=True):
    """One broker, as it has announced itself last."""

    node_id: int
    leads: bool
    is_live: bool = True
    """False: it has not announced itself for 5 seconds."""
    rack: str | None = None
    addresses: Mapping[str, str] = {}
    """The host and port of each of its doors, by the door's name."""
    announced_ms_ago: int = 0
    position: int = 0
    """Up to where it knows the log, in bytes of the log."""
    behind_bytes: int = 0
    """The bytes from there to the furthest position that any broker has told."""
    behind_ms: int = 0
    """The age of the first byte that it had not followed when it announced itself, to about a second."""
    catalog: int = 0
    """The version of the catalog of objects that it knows."""
    release: str = ""


class ClusterStatus(Struct, frozen=True, kw_only=True):
    """The brokers that share a log, as one of them knows them."""

    answered_by: int
    """The node id of the broker that tells all this."""
    role: str
    """The role of that broker: `leader` or `follower`."""
    is_shared: bool
    """False: that broker is alone, and no other could lead its log."""
    leader: int | None
    """The node id of the leader. None: nobody leads, or that broker does not know who."""
    epoch: int = 0
    """The number of leaders that there have been, as far as that broker knows."""
    tail_bytes: int = 0
    """The bytes of the log that are not in objects yet."""
    tail_ms: int = 0
    """The age of the oldest group that is not in objects yet, as far as that broker has seen it come."""
    catalog: int = 0
    brokers: tuple[BrokerStatus, ...] = ()
    version: int = 1
