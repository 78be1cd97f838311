"""Load the demo's input as any Apache Pulsar client would, by its own client for Python.

The producer has a name, by which the broker tells repeats: what a client sends again after it has lost its connection
is stored once.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Any

import pulsar

from exacta.demo.flights import Message
from exacta.demo.topics import LoadFailed

_PRODUCER = "flights"
_PROGRESS_EVERY = 5_000


def load(url: str, topic: str, messages: Iterable[Message], loaded: Callable[[int], None]) -> None:
    """Produce the messages in order; call `loaded` with how many more were given to the producer.

    Raises LoadFailed if any of them was not acknowledged.
    """
    failures: list[str] = []
    counting = threading.Lock()  # the client calls back on a thread of its own

    def delivered(result: Any, _: Any) -> None:
        if result != pulsar.Result.Ok:
            with counting:
                failures.append(str(result))

    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        producer = client.create_producer(
            topic,
            producer_name=_PRODUCER,
            block_if_queue_full=True,
            batching_enabled=True,
            batching_type=pulsar.BatchingType.KeyBased,
            compression_type=pulsar.CompressionType.LZ4,
        )
        count = 0
        for count, message in enumerate(messages, 1):
            producer.send_async(message.value, delivered, partition_key=message.key.decode())
            if count % _PROGRESS_EVERY == 0:
                loaded(_PROGRESS_EVERY)
        loaded(count % _PROGRESS_EVERY)
        producer.flush()
    except pulsar.PulsarException as error:
        raise LoadFailed(f"Pulsar's client says: {error}") from error
    finally:
        client.close()
    if failures:
        raise LoadFailed(f"{len(failures)} messages were not acknowledged {failures[:1]}")
