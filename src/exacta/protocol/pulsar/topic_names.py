"""Names of topics as Pulsar's clients write them.

Owns the three forms of a name (`orders`, `tenant/namespace/orders`, `persistent://tenant/namespace/orders`), which are
made one here, and the suffix of a partition. It does not know which topics there are, nor what another protocol calls
them.
"""

import re
from typing import Final

from msgspec import Struct

DEFAULT_TENANT: Final = "public"
DEFAULT_NAMESPACE: Final = "default"
PERSISTENT: Final = "persistent"

_PARTITION: Final = re.compile(r"(?s)(.+)-partition-(0|[1-9][0-9]{0,9})")
_PART: Final = re.compile(r"[-=:.\w]+", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_MOST_PARTITIONS: Final = 2**31


class InvalidTopicName(ValueError):
    """A name that no topic can have."""


class TopicName(Struct, frozen=True, kw_only=True):
    """A topic, or one partition of it. Two names of one topic are equal."""

    domain: str = PERSISTENT
    """`persistent`, or another one, which the broker may not know."""
    tenant: str = DEFAULT_TENANT
    namespace: str = DEFAULT_NAMESPACE
    local_name: str
    """The last part, without the suffix of a partition."""
    partition: int | None = None
    """The index of the partition; None: the topic as a whole, or one that is not partitioned."""

    @property
    def topic(self) -> str:
        """The full name of the topic, without a partition."""
        return f"{self.domain}://{self.tenant}/{self.namespace}/{self.local_name}"

    def __str__(self) -> str:
        """Return the full name."""
        return self.topic if self.partition is None else f"{self.topic}-partition-{self.partition}"


def parse_topic_name(name: str) -> TopicName:
    """Read a name in any of its forms. Raises `InvalidTopicName`.

    Names of Pulsar's first version, which have a cluster between tenant and namespace, are refused.
    """
    domain, is_full, rest = name.partition("://")
    if not is_full:
        domain, rest = PERSISTENT, name
    parts = rest.split("/")
    if len(parts) == 1 and not is_full:
        parts = [DEFAULT_TENANT, DEFAULT_NAMESPACE, *parts]
    if len(parts) != 3:
        raise InvalidTopicName(f"{name!r} is not a topic's name: it has {len(parts)} parts, not tenant/namespace/topic")
    tenant, namespace, local_name = parts
    for part in (domain, tenant, namespace):
        if not _PART.fullmatch(part):
            raise InvalidTopicName(f"{name!r} is not a topic's name: {part!r} may have letters, digits and -=:._ only")
    if not local_name or _CONTROL.search(local_name):
        raise InvalidTopicName(f"{name!r} is not a topic's name: its last part is empty, or has control characters")
    partition = None
    found = _PARTITION.fullmatch(local_name)
    if found and int(found[2]) < _MOST_PARTITIONS:
        local_name, partition = found[1], int(found[2])
    return TopicName(domain=domain, tenant=tenant, namespace=namespace, local_name=local_name, partition=partition)
