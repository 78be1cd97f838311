"""The client libraries that judge a broker, each behind the same small interface (`interface.py`)."""

import os

from .aio import AiokafkaClient
from .interface import (
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
from .kafka_python import KafkaPythonClient
from .librdkafka import LibrdkafkaClient

CLIENTS: tuple[type[Client], ...] = (LibrdkafkaClient, AiokafkaClient, KafkaPythonClient)
if os.environ.get("EXACTA_TEST_JAVA"):
    from .java import JavaClient

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
