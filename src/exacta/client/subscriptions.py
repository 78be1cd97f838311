"""See and move the subscriptions of Apache Pulsar clients on an Exacta (Ask, ResetSubscription)."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from msgspec import structs

from exacta.client.ask import ask
from exacta.client.deadline import Deadline
from exacta.client.errors import UnsupportedByBroker
from exacta.client.routing import Client, Controller
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k17788_reset_subscription import (
    PartitionReset,
    ResetSubscriptionRequest,
    TopicReset,
)
from exacta.protocol.kafka.messages.k17792_ask import AskRequest
from exacta.readmodel.subscriptions import AskSubscriptions, SubscriptionDescription, Subscriptions

_OF_THE_WHOLE = frozenset(
    {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.NOT_CONTROLLER}
)
"""The errors of one partition that all of them would have."""

EARLIEST, LATEST = -2, -1
"""These stand for the start of the log and for its end, as offsets to go to."""


class Target(NamedTuple):
    """The place where a subscription is to go on: a time where one is given, else an offset, `EARLIEST` or `LATEST`."""

    offset: int = LATEST
    timestamp_ms: int = -1


class Reset(NamedTuple):
    """The outcome of a reset in one partition; `error` is None where it is done, or can be."""

    partition: int
    error: ErrorCode | None
    old_position: int
    position: int
    closed_consumers: int


def describe_subscriptions(
    client: Client,
    topics: Iterable[str] | None = None,
    names: Iterable[str] | None = None,
    *,
    partition: int | None = None,
    details: bool = False,
    page: int = 1000,
    deadline: Deadline | None = None,
) -> Iterator[SubscriptionDescription]:
    """Yield subscriptions in the order of topics, partitions and names, page by page.

    Raises `UnsupportedByBroker` on any other cluster than an Exacta, and what `Client.call` raises. A topic that is not
    there has no subscriptions.
    """
    _check_exacta(client, AskRequest(), deadline)
    question = AskSubscriptions(
        topics=None if topics is None else tuple(topics),
        partitions=None if partition is None else (partition,),
        names=None if names is None else tuple(names),
        has_details=details,
        most=page,
    )
    while True:
        found = ask(client, question, Subscriptions, "looking at subscriptions", deadline)
        yield from found.subscriptions
        if found.end is None:
            return
        question = structs.replace(question, after=found.end)


def reset_subscription(
    client: Client,
    topic: str,
    name: str,
    partitions: Iterable[int],
    to: Target,
    *,
    dry_run: bool = False,
    deadline: Deadline | None = None,
) -> list[Reset]:
    """Let a subscription go on elsewhere; a time stands for the first message of that time or later.

    Its consumers are disconnected, and connect again. Raises what `describe_subscriptions` raises.
    """
    wanted = [
        PartitionReset(partition_index=each, offset=to.offset, timestamp_ms=to.timestamp_ms) for each in partitions
    ]
    request = ResetSubscriptionRequest(
        subscription=name, topics=[TopicReset(name=topic, partitions=wanted)], validate_only=dry_run
    )
    _check_exacta(client, request, deadline)
    reply = client.call(
        Controller(),
        request,
        what=f"moving subscription '{name}' of topic '{topic}'",
        codes=lambda reply: (
            each.error_code for found in reply.topics for each in found.partitions if each.error_code in _OF_THE_WHOLE
        ),
        deadline=deadline,
    )
    return [
        Reset(
            each.partition_index,
            ErrorCode(each.error_code) if each.error_code else None,
            each.old_position,
            each.position,
            each.closed_consumers,
        )
        for found in reply.topics
        for each in found.partitions
    ]


def _check_exacta(client: Client, request: Any, deadline: Deadline | None) -> None:
    if not client.offers(Controller(), request, deadline):
        raise UnsupportedByBroker(f"{client.bootstrap} is not an Exacta, or is an older one: it shows no subscriptions")
