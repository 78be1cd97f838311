"""Make sure that a sink's topics exist: the cluster creates them on demand, or one sentence refuses them.

This module owns the one rule for the topics of option `topic`, of a column `topic` and of `transaction.marker.topic`.
(A name that is misspelt makes a new topic, as with Spark's own sink. Markers do not get lost by it: a query that has
its markers elsewhere is refused.)
"""

from exacta.client.errors import DeadlineExceeded
from exacta.client.routing import Client
from exacta.protocol.kafka.errors import ErrorCode
from exacta.spark.sink.errors import SinkError

_CREATION_TIMEOUT_MS = 15_000
"""The time that a topic may take to come into being."""


def partitions_of(client: Client, topic: str) -> int:
    """Return how many partitions a topic has that rows are written to; raises `SinkError` if there is no such topic."""
    first_ms = min(client.call_timeout_ms, _CREATION_TIMEOUT_MS)
    try:
        return client.partitions([topic], create=True, deadline=client.deadline(first_ms))[topic]
    except DeadlineExceeded as error:
        # A cluster that creates topics does so in a second or two; the others give the same answer for ever.
        if getattr(error.__cause__, "code", None) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise SinkError(missing_topic(topic, client.bootstrap)) from error
        if first_ms == client.call_timeout_ms:
            raise
        return client.partitions([topic], create=True)[topic]


def missing_topic(topic: str, bootstrap: str) -> str:
    """Return the sentence for a topic that does not exist where topics are not created on demand."""
    return (
        f"topic '{topic}' does not exist on {bootstrap}, and the cluster creates none on demand: create it first "
        f"(kafka-topics.sh --bootstrap-server {bootstrap} --create --topic {topic} --partitions NUMBER), or look at "
        "its name"
    )
