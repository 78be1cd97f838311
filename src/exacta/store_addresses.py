"""The addresses of PostgreSQL and of an object store, which several brokers share, and what is wrong with one.

No address holds a secret: an address stands in configuration, in the list of processes, and in log lines. PostgreSQL's
password comes from the environment (`PGPASSWORD`) or from a file (`PGPASSFILE`), and so do the keys of an object store.
Beyond this machine both are reached by TLS only.
"""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

POSTGRES_PORT = 5432
_ENCRYPTED = ("require", "verify-ca", "verify-full")
_SECRETS_OF_POSTGRES = ("password", "sslpassword")
_OF_THE_SESSION = ("options", "service", "server_settings", "target_session_attrs")
"""Parameters of a URL by which a session would be another than the broker needs."""

_SCHEMES = ("s3", "gs", "az")
_OF_OBJECTS = ("endpoint", "region", "account")


class PostgresAddress(NamedTuple):
    """Say where PostgreSQL is: its hosts in the order in which they are tried, and the URL for the driver."""

    url: str
    hosts: Sequence[tuple[str, int]]


class ObjectsAddress(NamedTuple):
    """Say where objects are: the kind of store, the bucket (or container), and the beginning of all keys."""

    scheme: str
    bucket: str
    prefix: str
    parameters: Mapping[str, str]


def postgres_address(url: str) -> PostgresAddress:
    """Return the address, with TLS asked for beyond this machine; raises ValueError with one line for the operator."""
    parts = _split(url)
    if parts.scheme not in ("postgresql", "postgres"):
        raise ValueError("is not a URL of the form postgresql://user@host:5432/database")
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    user, _, places = parts.netloc.rpartition("@")
    # A password that is not encoded may have a slash in it, and end what is taken for the middle of the URL.
    if ":" in user or "@" in parts.path or any(name in parameters for name in _SECRETS_OF_POSTGRES):
        raise ValueError("holds a password: put it into the environment (PGPASSWORD) or a file that PGPASSFILE names")
    for name in _OF_THE_SESSION:
        if name in parameters:
            raise ValueError(f"sets '{name}', which the broker sets itself")
    hosts = _hosts(places) or _hosts_of_parameters(parameters)
    if not hosts:
        raise ValueError("names no host")
    mode = parameters.get("sslmode")
    if not all(_is_near(host) for host, _ in hosts):
        if mode is None:
            url += ("&" if parts.query else "?") + "sslmode=verify-full"
        elif mode not in _ENCRYPTED:
            raise ValueError(f"asks for sslmode={mode}: beyond this machine it must be one of {', '.join(_ENCRYPTED)}")
    return PostgresAddress(url, hosts)


def objects_address(url: str) -> ObjectsAddress:
    """Return the address; raises ValueError with one line for the operator."""
    parts = _split(url)
    if parts.scheme == "file":
        raise ValueError("names files: what is put there is not durable, and other brokers do not see it")
    if parts.scheme not in _SCHEMES:
        raise ValueError("is not a URL of the form s3://bucket/prefix, gs://bucket/prefix or az://container/prefix")
    if "@" in parts.netloc or ":" in parts.netloc or "@" in parts.path:
        raise ValueError("holds a user or a secret: put the keys into the environment or a file")
    if not parts.netloc:
        raise ValueError("names no bucket")
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in parameters:
        if name not in _OF_OBJECTS:
            raise ValueError(f"sets '{name}', where only {', '.join(_OF_OBJECTS)} can be set: keys do not stand in it")
    endpoint = urlsplit(parameters.get("endpoint", ""))
    if endpoint.scheme not in ("", "https") and not (endpoint.scheme == "http" and _is_near(endpoint.hostname or "")):
        raise ValueError("has an endpoint without TLS: beyond this machine it must begin with https://")
    if "@" in endpoint.netloc:
        raise ValueError("holds a user or a secret in its endpoint: put the keys into the environment or a file")
    return ObjectsAddress(parts.scheme, parts.netloc, parts.path.strip("/"), parameters)


def problem_of_postgres(url: str) -> str:
    """Return what is wrong with the option `postgres`, in one line without a secret; empty: nothing."""
    return _problem("postgres", postgres_address, url)


def problem_of_objects(url: str) -> str:
    """Return what is wrong with the option `objects`, in one line without a secret; empty: nothing."""
    return _problem("objects", objects_address, url)


def _problem(option: str, parse: Callable[[str], object], url: str) -> str:
    try:
        parse(url)
    except ValueError as error:
        return f"{option} {error}"
    return ""


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        raise ValueError("is not a URL") from None


def _hosts(places: str) -> Sequence[tuple[str, int]]:
    """Return the hosts of a URL's middle: `host:port,host:port`, an IPv6 address in brackets."""
    return [_host_and_port(place) for place in places.split(",") if place]


def _hosts_of_parameters(parameters: Mapping[str, str]) -> Sequence[tuple[str, int]]:
    hosts = [host for host in parameters.get("host", "").split(",") if host]
    ports = [port for port in parameters.get("port", "").split(",") if port] or [str(POSTGRES_PORT)]
    if len(ports) == 1:
        ports *= len(hosts)
    if len(ports) != len(hosts):
        raise ValueError("names other numbers of hosts and ports")
    return [(host, _port(port)) for host, port in zip(hosts, ports, strict=True)]


def _host_and_port(place: str) -> tuple[str, int]:
    host, bracket, rest = place.rpartition("]") if place.startswith("[") else ("", "", place)
    name, _, port = rest.partition(":")
    return unquote(host[1:] if bracket else name), _port(port or str(POSTGRES_PORT))


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise ValueError("has a port that is no number from 1 to 65535")
    return int(text)


def _is_near(host: str) -> bool:
    """Return whether a host is this machine: a loopback address, or the folder of a Unix socket."""
    if host.startswith("/") or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
