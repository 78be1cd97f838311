"""`exacta.exactly_once`: which client a consumer belongs to, by what it offers."""

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Protocol, overload

if TYPE_CHECKING:
    from exacta.transform.aio import AsyncExactlyOnce
    from exacta.transform.confluent import ExactlyOnce


class ConfluentConsumer(Protocol):
    """A consumer of confluent-kafka, by what tells it."""

    def consume(self, *arguments: Any, **options: Any) -> Any:
        """Take messages."""

    def consumer_group_metadata(self) -> Any:
        """Return the metadata of the group."""


class ConfluentProducer(Protocol):
    """A producer of confluent-kafka, by what tells it."""

    def begin_transaction(self) -> Any:
        """Begin a transaction."""


class AsyncConsumer(Protocol):
    """A consumer of aiokafka, by what tells it."""

    def getmany(self, *partitions: Any, **options: Any) -> Any:
        """Take messages."""


@overload
def exactly_once(consumer: ConfluentConsumer, producer: ConfluentProducer) -> "ExactlyOnce": ...
@overload
def exactly_once(consumer: AsyncConsumer, producer: Callable[[Any], Any]) -> "AsyncExactlyOnce": ...
def exactly_once(consumer: Any, producer: Any) -> Any:
    """Consume and produce in one transaction: `with once as transaction`, as often as the program likes.

    With confluent-kafka, `consumer` is a `Consumer` that has subscribed, with `enable.auto.commit=false` and
    `isolation.level=read_committed`, and `producer` a `Producer` with a `transactional.id`, after
    `init_transactions()`. With aiokafka, it is `async with once as transaction`. `consumer` is an `AIOKafkaConsumer`,
    and `producer` a function that makes an `AIOKafkaProducer` for a partition, with a `transactional_id` that this
    partition has in all instances of the program. Nobody else may poll the consumer.
    docs/how-to/exactly-once.md says what each failure leads to.

    Raises TypeError if these are not clients that it knows, and ValueError for a configuration that loses messages.
    """
    if iscoroutinefunction(getattr(consumer, "getmany", None)):
        if not callable(producer):
            raise TypeError(
                "aiokafka's offsets name no generation of the group, so a producer for all partitions would not be "
                "fenced: give exactly_once a function that makes an AIOKafkaProducer for a partition"
            )
        from exacta.transform.aio import AsyncExactlyOnce

        return AsyncExactlyOnce(consumer, producer)
    if _has(consumer, "consume", "consumer_group_metadata", "memberid", "committed", "seek"):
        if not _has(producer, "begin_transaction", "send_offsets_to_transaction", "commit_transaction"):
            raise TypeError(f"exactly_once takes a transactional producer of confluent-kafka, not {_kind(producer)}")
        if iscoroutinefunction(consumer.consume):
            raise TypeError("exactly_once takes confluent-kafka's Consumer and Producer, not those for asyncio")
        from exacta.transform.confluent import ExactlyOnce

        return ExactlyOnce(consumer, producer)
    raise TypeError(f"exactly_once takes a consumer of confluent-kafka or aiokafka, not {_kind(consumer)}")


def _has(client: object, *methods: str) -> bool:
    return all(callable(getattr(client, name, None)) for name in methods)


def _kind(client: object) -> str:
    return f"{type(client).__module__}.{type(client).__qualname__}"
