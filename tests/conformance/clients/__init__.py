"""The client libraries that judge a broker, each behind the same small interface (`interface.py`)."""

from .aio import AiokafkaClient
from .interface import (
    AbortRequiredError,
    CallAgainError,
    Client,
    ClientError,
    Consumer,
    FencedError,
    Isolation,
    Producer,
    Record,
    TopicPartition,
)
from .kafka_python import KafkaPythonClient
from .librdkafka import LibrdkafkaClient

CLIENTS: tuple[type[Client], ...] = (LibrdkafkaClient, AiokafkaClient, KafkaPythonClient)

__all__ = [
    "CLIENTS",
    "AbortRequiredError",
    "CallAgainError",
    "Client",
    "ClientError",
    "Consumer",
    "FencedError",
    "Isolation",
    "Producer",
    "Record",
    "TopicPartition",
]
