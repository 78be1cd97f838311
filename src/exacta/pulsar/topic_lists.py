"""The topics of a namespace, as consumers of a pattern and clients of the web interface get them.

Every partition of a topic of several ones is listed; clients make one topic of them. Internal topics, and those that
the client may not see, are left out.
"""

from collections.abc import Callable, Iterable, Mapping

from exacta.front.broker import Broker
from exacta.front.request import Request
from exacta.ports.authorizer import Operation
from exacta.pulsar.needs import allows
from exacta.pulsar.topic_names import names_in


def visible(broker: Broker, request: Request, topics: Iterable[str]) -> Iterable[str]:
    """Return those of these topics of the log that the client may see."""
    if broker.authorizer.allows_all:
        return topics
    return (topic for topic in topics if allows(broker, request, Operation.DESCRIBE, topic))


def topics_of(
    broker: Broker,
    request: Request,
    counts: Mapping[str, int],
    tenant: str,
    namespace: str,
    matches: Callable[[str], object] | None = None,
) -> list[str]:
    """Return the full names of those topics that are in a namespace, sorted.

    `counts` has the numbers of partitions of topics of the log, and `matches` says of `tenant/namespace/topic` whether
    a topic is listed.
    """
    whole = f"{tenant}/{namespace}/"
    return sorted(
        name
        for topic, local_name in names_in(tenant, namespace, visible(broker, request, counts))
        if matches is None or matches(whole + local_name)
        for name in _partitions(f"persistent://{whole}{local_name}", counts[topic])
    )


def _partitions(name: str, count: int) -> Iterable[str]:
    return (name,) if count == 1 else (f"{name}-partition-{index}" for index in range(count))
