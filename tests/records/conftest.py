"""Fixtures of the tests of records, which go through Kafka's front."""

from tests.kafka.conftest import broker, wire

__all__ = ["broker", "wire"]
