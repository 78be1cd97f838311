"""Kafka's transactional producer for Java, in the virtual machine of `java.py`; each call tells what came of it."""

from typing import Any

from tests.pulsar_clients.java import java, outcome

_KAFKA = "org.apache.kafka"


def hash_map(options: dict[Any, Any]) -> Any:
    """Return a map as Java has it."""
    return java("java.util.HashMap")(options)


class TransactionalProducer:
    """One producer, initialised, which writes to partition 0 of topics and sends offsets of a group."""

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        """Take the id over."""
        strings = java(f"{_KAFKA}.common.serialization.StringSerializer")
        options = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "linger.ms": "0"}
        make = java(f"{_KAFKA}.clients.producer.KafkaProducer")
        self._producer = make(hash_map(options), strings(), strings())
        self._producer.initTransactions()

    def begin(self) -> str:
        """Begin a transaction, of which the broker does not hear."""
        return outcome(self._producer.beginTransaction)

    def write(self, topic: str, value: str) -> str:
        """Write one record, and wait until it is there."""
        record = java(f"{_KAFKA}.clients.producer.ProducerRecord")(topic, value)
        try:
            sent = self._producer.send(record)
        except java("java.lang.Exception") as error:  # of an earlier call
            return str(error.getClass().getSimpleName())
        return outcome(sent)

    def send_offsets(self, topic: str, offset: int = 1, group: str = "g") -> str:
        """Send an offset of a group that has no members."""
        place = java(f"{_KAFKA}.common.TopicPartition")(topic, 0)
        offsets = hash_map({place: java(f"{_KAFKA}.clients.consumer.OffsetAndMetadata")(offset)})
        metadata = java(f"{_KAFKA}.clients.consumer.ConsumerGroupMetadata")(group)
        return outcome(lambda: self._producer.sendOffsetsToTransaction(offsets, metadata))

    def commit(self) -> str:
        """Commit."""
        return outcome(self._producer.commitTransaction)

    def abort(self) -> str:
        """Abort."""
        return outcome(self._producer.abortTransaction)

    def close(self) -> None:
        """Close it at once."""
        self._producer.close(java("java.time.Duration").ZERO)
