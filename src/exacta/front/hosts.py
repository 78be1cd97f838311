"""The addresses of clients, and whose share each of them counts towards.

A client with an IPv6 address has the whole network behind it: a subscriber gets a /64 at least (RFC 6177), and a
machine takes as many addresses of it as it likes (RFC 8981). So a share is the network's. A socket that takes both
protocols shows an IPv4 address as one of IPv6 (RFC 4291, 2.5.5.2). It is the same client.
"""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

SHARE_BITS = 64
CACHED = 1_000
"""It is asked for with every request. Hosts beyond this many cost some microseconds."""


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine by its loopback address."""
    address = _address(host)
    return address is not None and address.is_loopback


def same_host(host: str) -> str:
    """Return the one way to write a host: an IPv4 address that is mapped to IPv6 is written as IPv4."""
    address = _address(host)
    return str(address) if isinstance(address, IPv4Address) else host


@lru_cache(maxsize=CACHED)
def share_of(host: str) -> str:
    """Return whose share a host counts towards: its IPv4 address, its network of IPv6, or else itself."""
    address = _address(host)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address), SHARE_BITS), strict=False))
    return host if address is None else str(address)


@lru_cache(maxsize=CACHED)
def share_beyond_loopback(host: str) -> str:
    """Return the same; empty for the machine itself, which has no share to keep to."""
    return "" if is_loopback(host) else share_of(host)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address, without its zone; None for a name, or a Unix socket."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
