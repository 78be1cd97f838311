"""Pulsar's own client for Python (and C++), which knows no transactions: what its scenarios share."""

from collections.abc import Callable
from typing import Any

import pulsar

RECEIVE_MS = 20_000
TYPES = {
    "exclusive": pulsar.ConsumerType.Exclusive,
    "shared": pulsar.ConsumerType.Shared,
    "failover": pulsar.ConsumerType.Failover,
    "key-shared": pulsar.ConsumerType.KeyShared,
}
ORDERED = ("exclusive", "failover")


def subscribe(client: pulsar.Client, topic: Any, kind: str = "exclusive", name: str = "s", **options: Any) -> Any:
    """Subscribe from the first message on."""
    options.setdefault("initial_position", pulsar.InitialPosition.Earliest)
    return client.subscribe(topic, name, consumer_type=TYPES[kind], **options)


def send(producer: Any, *values: str, **options: Any) -> list[Any]:
    """Send messages, many at once; return their ids."""
    found: list[Any] = []
    for value in values:
        producer.send_async(value.encode(), lambda result, message_id: found.append((result, message_id)), **options)
    producer.flush()
    assert [result for result, _ in found] == [pulsar.Result.Ok] * len(values)
    return [message_id for _, message_id in found]


def receive(consumer: Any, count: int) -> list[Any]:
    """Return the next messages of a consumer, which must come."""
    found: list[Any] = []
    while len(found) < count:
        try:
            found.append(consumer.receive(timeout_millis=RECEIVE_MS))
        except pulsar.Timeout:
            raise AssertionError(f"only {texts(found)} came") from None
    return found


def texts(messages: list[Any]) -> list[str]:
    """Return the values of messages."""
    return [each.data().decode() for each in messages]


def text_of(message: Any) -> str:
    """Return the value of a message."""
    return str(message.data().decode())


def rest(reader: Any) -> list[str]:
    """Read until the reader itself says that there is no more."""
    found = []
    while reader.has_message_available():
        found.append(text_of(reader.read_next(timeout_millis=RECEIVE_MS)))
    return found


def failure(work: Callable[[], object]) -> type[BaseException]:
    """Return what a call fails with."""
    try:
        work()
    except pulsar.PulsarException as error:
        return type(error)
    raise AssertionError("it did not fail")
