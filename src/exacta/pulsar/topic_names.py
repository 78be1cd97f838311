"""The names of topics in the log for Pulsar's names (decision 0032).

Owns the mapping. It is applied at this front's door and nowhere else. `persistent://public/default/orders` is the topic
`orders`, as Kafka's clients know it. Any other name is written in the alphabet that Kafka allows:

    persistent://acme/shop/orders/2026   ->   pulsar..acme..shop..orders.2F2026

Two dots part the three parts of a name. A byte that is no letter, digit, `_` or `-` is a dot and two hexadecimal
digits. A name of the default namespace is written so, too, if Kafka does not allow it, or if it looks like a name that
was written so. Therefore two topics of Pulsar never have one name in the log.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from exacta.protocol.pulsar.topic_names import (
    DEFAULT_NAMESPACE,
    DEFAULT_TENANT,
    PERSISTENT,
    InvalidTopicName,
    TopicName,
    parse_topic_name,
)

LONGEST: Final = 249
"""The bytes of the longest name that Kafka allows."""

_LEGAL: Final = re.compile(rf"[A-Za-z0-9._-]{{1,{LONGEST}}}")
_WRITTEN: Final = re.compile(r"pulsar((?:\.\.(?:[A-Za-z0-9_-]|\.[0-9A-F]{2})+){3})")
_WRITTEN_PREFIX: Final = "pulsar.."
_PARTITION_WORD: Final = "-partition-"
_PART: Final = re.compile(r"\.\.((?:[A-Za-z0-9_-]|\.[0-9A-F]{2})+)")
_BYTE: Final = re.compile(rb"\.([0-9A-F]{2})")
_ESCAPED: Final = re.compile(rb"[^A-Za-z0-9_-]")

COORDINATOR: Final = TopicName(tenant="pulsar", namespace="system", local_name="transaction_coordinator_assign")
"""The topic that no log has: its partitions stand for the coordinators of transactions. There is one."""


Place: TypeAlias = tuple[str, int]
"""A partition: the topic's name in the log, and the index."""


class NamedTopic(Struct, frozen=True):
    """A topic, or one partition of it, by the name that a client has written, and by its place in the log."""

    name: TopicName
    place: Place
    """A topic of several partitions that is named as a whole is its first one."""

    @property
    def log_name(self) -> str:
        """The topic's name in the log."""
        return self.place[0]

    @property
    def index(self) -> int:
        """The index of the partition."""
        return self.place[1]

    def __str__(self) -> str:
        """Return the full name for Pulsar's clients."""
        return str(self.name)


def named_topic(written: str) -> NamedTopic:
    """Read a topic's name, as a client has written it. Raises `InvalidTopicName` if no topic here can have it."""
    name = parse_topic_name(written)
    return NamedTopic(name, (kafka_name(name), name.partition or 0))


def coordinator_partition(name: TopicName) -> bool:
    """Return whether this is the topic that stands for the coordinators, or its partition."""
    return name.topic == COORDINATOR.topic


def kafka_name(name: TopicName) -> str:
    """Return the name in the log of a topic; its partition does not matter. Raises `InvalidTopicName`."""
    if name.domain != PERSISTENT:
        raise InvalidTopicName(f"{name} is not kept: only persistent:// topics are served")
    local = name.local_name
    if (name.tenant, name.namespace) == (DEFAULT_TENANT, DEFAULT_NAMESPACE) and _is_plain(local):
        return local
    written = _written(name.tenant, name.namespace, local)
    if len(written) > LONGEST:
        raise InvalidTopicName(
            f"{name} is too long: in the log its name has {len(written)} bytes, {LONGEST} are allowed"
        )
    return written


def pulsar_name(topic: str) -> TopicName:
    """Return the name by which Pulsar's clients know a topic of the log."""
    parts = _parts(topic)
    if parts is None:
        return TopicName(local_name=topic)
    tenant, namespace, local_name = parts
    return TopicName(tenant=tenant, namespace=namespace, local_name=local_name)


def names_in(tenant: str, namespace: str, topics: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Return those of the topics of the log that lie in a namespace, each with its local name.

    What Pulsar's clients cannot name is left out, such as a topic whose name ends like a partition's name.
    """
    is_default = (tenant, namespace) == (DEFAULT_TENANT, DEFAULT_NAMESPACE)
    prefix = _written(tenant, namespace) + ".."
    for topic in topics:
        if is_default and not topic.startswith(_WRITTEN_PREFIX) and _PARTITION_WORD not in topic:
            yield topic, topic  # nearly all of them, of which there may be many
        elif is_default or topic.startswith(prefix):
            name = pulsar_name(topic)
            if (name.tenant, name.namespace) == (tenant, namespace) and _is_nameable(name):
                yield topic, name.local_name


def _is_nameable(name: TopicName) -> bool:
    try:
        return parse_topic_name(str(name)) == name
    except InvalidTopicName:
        return False


def _is_plain(local: str) -> bool:
    return _LEGAL.fullmatch(local) is not None and local not in (".", "..") and _parts(local) is None


def _written(*parts: str) -> str:
    escaped = (_ESCAPED.sub(lambda found: b".%02X" % found[0][0], part.encode()).decode() for part in parts)
    return "..".join(("pulsar", *escaped))


def _parts(topic: str) -> tuple[str, str, str] | None:
    """Return tenant, namespace and local name of a written name, or None if it is not a name."""
    found = _WRITTEN.fullmatch(topic)
    if found is None:
        return None
    try:
        tenant, namespace, local = (
            _BYTE.sub(lambda each: bytes.fromhex(each[1].decode()), part.encode()).decode()
            for part in _PART.findall(found[1])
        )
    except UnicodeDecodeError:
        return None
    return (tenant, namespace, local) if _written(tenant, namespace, local) == topic else None
