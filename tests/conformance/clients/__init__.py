"""The client libraries that judge a broker, each behind the same small interface (`interface.py`)."""

import os

from tests.conformance.clients.aio import AiokafkaClient
from tests.conformance.clients.interface import (
    AbortRequiredError,
    CallAgainError,
    Client,
    ClientError,
    Consumer,
    FencedError,
    GroupProtocol,
    Isolation,
    Producer,
    Record,
    TopicPartition,
)
from tests.conformance.clients.kafka_python import KafkaPythonClient
from tests.conformance.clients.librdkafka import LibrdkafkaClient

CLIENTS: tuple[type[Client], ...] = (LibrdkafkaClient, AiokafkaClient, KafkaPythonClient)
if os.environ.get("EXACTA_TEST_JAVA"):
    from tests.conformance.clients.java import JavaClient

    CLIENTS = (JavaClient,)

__all__ = [
    "CLIENTS",
    "AbortRequiredError",
    "CallAgainError",
    "Client",
    "ClientError",
    "Consumer",
    "FencedError",
    "GroupProtocol",
    "Isolation",
    "Producer",
    "Record",
    "TopicPartition",
]
