"""`exacta.exactly_once`: which client a consumer belongs to, by what it offers."""

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from exacta.transform.confluent import ExactlyOnce


class ConfluentConsumer(Protocol):
    """A consumer of confluent-kafka, by what tells it."""

    consume: Callable[..., Any]
    consumer_group_metadata: Callable[..., Any]


class ConfluentProducer(Protocol):
    """A producer of confluent-kafka, by what tells it."""

    begin_transaction: Callable[..., Any]
    send_offsets_to_transaction: Callable[..., Any]


def exactly_once(consumer: "ConfluentConsumer", producer: "ConfluentProducer") -> "ExactlyOnce":
    """Consume and produce in one transaction: `with once as transaction`, as often as the program likes.

    `consumer` is a `Consumer` of confluent-kafka that has subscribed, with `enable.auto.commit=false` and
    `isolation.level=read_committed`. `producer` is a `Producer` with a `transactional.id`, after `init_transactions()`.
    Between two blocks nobody else may poll the consumer. docs/how-to/exactly-once.md says what each failure leads to.

    Raises TypeError if these are not a consumer and a producer of a client that it knows.
    """
    if _has(consumer, "consume", "consumer_group_metadata", "memberid", "committed", "seek"):
        if not _has(producer, "begin_transaction", "send_offsets_to_transaction", "commit_transaction"):
            raise TypeError(f"exactly_once takes a transactional producer of confluent-kafka, not {_kind(producer)}")
        if iscoroutinefunction(consumer.consume):
            raise TypeError("exactly_once takes confluent-kafka's Consumer and Producer, not those for asyncio")
        from exacta.transform.confluent import ExactlyOnce

        return ExactlyOnce(consumer, producer)
    raise TypeError(f"exactly_once takes a consumer of confluent-kafka, not {_kind(consumer)}")


def _has(client: object, *methods: str) -> bool:
    return all(callable(getattr(client, name, None)) for name in methods)


def _kind(client: object) -> str:
    return f"{type(client).__module__}.{type(client).__qualname__}"
