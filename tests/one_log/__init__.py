"""Kafka's and Pulsar's clients on the same topics: each reads the other's messages."""
