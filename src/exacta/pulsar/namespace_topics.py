"""The topics of a namespace, as consumers of a pattern and clients of the web interface get them.

Every partition of a topic of several ones is listed; clients make one topic of them. Internal topics, and those that
the client may not see, are left out.
"""

from collections.abc import Callable, Iterable

from exacta.core.state.state import State
from exacta.core.values.internal_topics import INTERNAL_TOPICS
from exacta.front.broker import Broker
from exacta.front.request import Request
from exacta.ports.authorizer import Operation
from exacta.pulsar.needs import allows
from exacta.pulsar.topic_names import names_in


def topics_of(
    broker: Broker,
    request: Request,
    state: State,
    topics: Iterable[str],
    tenant: str,
    namespace: str,
    matches: Callable[[str], object] | None = None,
) -> list[str]:
    """Return the full names of those of these topics that are in a namespace, sorted.

    `matches` says of `tenant/namespace/topic` whether a topic is listed.
    """
    kept: Iterable[str] = (topic for topic in topics if topic in state.topics and topic not in INTERNAL_TOPICS)
    if not broker.authorizer.allows_all:
        kept = (topic for topic in kept if allows(broker, request, Operation.DESCRIBE, topic))
    counts = ((name, state.topics[topic].partition_count) for topic, name in names_in(tenant, namespace, kept))
    whole = f"{tenant}/{namespace}/"
    return sorted(
        name
        for local_name, count in counts
        if matches is None or matches(whole + local_name)
        for name in _partitions(f"persistent://{whole}{local_name}", count)
    )


def _partitions(name: str, count: int) -> Iterable[str]:
    return (name,) if count == 1 else (f"{name}-partition-{index}" for index in range(count))
