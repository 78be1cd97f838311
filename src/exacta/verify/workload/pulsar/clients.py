"""Pulsar's client for Python, as this checker sets it up."""

from collections.abc import Callable
from typing import Any

import pulsar

from exacta.verify.workload.clients import CALL_S
from exacta.verify.workload.pulsar.side import Place, pulsar_name

_FIRST_SEQUENCE = 1
"""The client (3.13) needs one, or it asks the broker again if it loses its connection before its first receipt. Then it
gives numbers a second time, and the broker takes messages for repeats of others. It takes 0 for none."""


def connected(url: str) -> Any:
    """Return a client, which logs errors only."""
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    return pulsar.Client(url, operation_timeout_seconds=int(CALL_S), logger=logger)


def producer_of(client: Any, place: Place, name: str, *, batching: bool) -> Any:
    """Return a producer that sends again whatever has no receipt. By its name, a new one, the broker tells repeats."""
    return client.create_producer(
        pulsar_name(place),
        producer_name=name,
        initial_sequence_id=_FIRST_SEQUENCE,
        send_timeout_millis=0,
        block_if_queue_full=True,
        batching_enabled=batching,
    )


def reader_of(client: Any, place: Place, arrived: Callable[[Any, Any], None] | None = None) -> Any:
    """Return a reader of a partition from its beginning on; `arrived` is called with each message, from a thread."""
    return client.create_reader(pulsar_name(place), pulsar.MessageId.earliest, reader_listener=arrived)


def offset_of(message_id: Any) -> int:
    """Return the offset that a message id stands for."""
    return int(message_id.entry_id()) + max(int(message_id.batch_index()), 0)
