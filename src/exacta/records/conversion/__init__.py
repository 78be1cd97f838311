"""Batches of the log as the other protocol's: Pulsar's entries as Kafka's record batches, and the reverse.

Only Pulsar's front may import it at once, because it loads `protobuf`. Others import it where they convert.
"""

from exacta.records.conversion.into_kafka import to_kafka
from exacta.records.conversion.into_pulsar import to_pulsar

__all__ = ["to_kafka", "to_pulsar"]
